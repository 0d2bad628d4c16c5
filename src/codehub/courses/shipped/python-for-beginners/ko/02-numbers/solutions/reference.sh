cat > 02-numbers/bill.py <<'EOF'
place = input("어디에서? ")
total = int(input("총액? "))
people = int(input("몇 명? "))
print(place)
print("=" * len(place))
print(f"한 사람: {total // people}")
print(f"남는 돈: {total % people}")
EOF
