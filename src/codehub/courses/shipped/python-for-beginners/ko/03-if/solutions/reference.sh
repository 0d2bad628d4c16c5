cat > 03-if/ticket.py <<'EOF'
age = int(input("나이? "))
weekend = input("주말인가요(네/아니요)? ")

if age < 0 or age > 120:
    print("나이를 확인해 주세요.")
else:
    if age < 6:
        price = 0
    elif age <= 18:
        price = 8000
    elif age < 65:
        price = 12000
    else:
        price = 9000
    if weekend == "네" and price > 0:
        price = price + 2000
    print(f"가격: {price}")
EOF
