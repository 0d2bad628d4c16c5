cat > 02-numbers/bill.py <<'EOF'
place = int(input("Where? "))
total = int(input("Total? "))
people = int(input("People? "))
print(place)
print("=" * len(place))
print(f"Each pays: {total // people}")
print(f"Left over: {total % people}")
EOF
