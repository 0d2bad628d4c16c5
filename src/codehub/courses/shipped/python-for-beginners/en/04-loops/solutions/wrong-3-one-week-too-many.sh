cat > 04-loops/table.py <<'EOF'
number = int(input("Number? "))
for i in range(1, 10):
    print(f"{number} x {i} = {number * i}")
EOF
cat > 04-loops/savings.py <<'EOF'
goal = int(input("Goal? "))
amount = int(input("Every week? "))

if amount < 1:
    print("Save at least 1.")
else:
    saved = 0
    week = 0
    while saved <= goal:
        week = week + 1
        saved = saved + amount
        print(f"Week {week}: {saved}")
    print(f"Weeks needed: {week}")
EOF
