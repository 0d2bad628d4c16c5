cat > 04-loops/table.py <<'EOF'
number = int(input("몇 단? "))
for i in range(1, 10):
    print(f"{number} x {i} = {number * i}")
EOF
cat > 04-loops/savings.py <<'EOF'
goal = int(input("목표 금액? "))
amount = int(input("한 주에 얼마? "))

if amount < 1:
    print("1 이상을 넣어 주세요.")
else:
    saved = 0
    week = 0
    while saved <= goal:
        week = week + 1
        saved = saved + amount
        print(f"{week}주차: {saved}")
    print(f"걸린 주: {week}")
EOF
