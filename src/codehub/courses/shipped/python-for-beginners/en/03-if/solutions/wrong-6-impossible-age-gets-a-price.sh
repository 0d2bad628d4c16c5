cat > 03-if/ticket.py <<'EOF'
age = int(input("Age? "))
weekend = input("Weekend (yes/no)? ")
if age < 6:
    price = 0
elif age <= 18:
    price = 8
elif age < 65:
    price = 12
elif age <= 120:
    price = 9
else:
    print("Please check the age.")
if weekend == "yes" and price > 0:
    price = price + 2
print(f"Price: {price}")
EOF
