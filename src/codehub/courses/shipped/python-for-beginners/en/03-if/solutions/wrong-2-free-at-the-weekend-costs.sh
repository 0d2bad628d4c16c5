cat > 03-if/ticket.py <<'EOF'
age = int(input("Age? "))
weekend = input("Weekend (yes/no)? ")

if age < 0 or age > 120:
    print("Please check the age.")
else:
    if age < 6:
        price = 0
    elif age <= 18:
        price = 8
    elif age < 65:
        price = 12
    else:
        price = 9
    if weekend == "yes":
        price = price + 2
    print(f"Price: {price}")
EOF
