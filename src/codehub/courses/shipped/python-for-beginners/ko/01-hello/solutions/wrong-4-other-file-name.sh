cat > 01-hello/Card.py <<'EOF'
name = "지훈"
city = "전주"
likes = "바둑"
line = "===================="

print(line)
print("이름:", name)
print("사는 곳:", city)
print("좋아하는 것:", likes)
print(line)
EOF
