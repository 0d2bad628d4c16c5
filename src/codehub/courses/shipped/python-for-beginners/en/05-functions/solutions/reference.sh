cat > 05-functions/shop.py <<'EOF'
def total(price, count):
    return price * count


def delivery_fee(amount):
    if amount >= 30:
        return 0
    return 3


def receipt_line(name, price, count):
    return f"{name} x {count} = {total(price, count)}"


print(receipt_line("Apple", 2, 3))
print(delivery_fee(12))
EOF
