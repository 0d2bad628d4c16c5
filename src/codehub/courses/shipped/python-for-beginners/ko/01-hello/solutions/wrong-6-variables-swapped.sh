cat > 01-hello/card.py <<'EOF'
name = "지훈"
city = "전주"
likes = "바둑"
line = "===================="

print(line)
print("이름:", city)
print("사는 곳:", name)
print("좋아하는 것:", likes)
print(line)
EOF
