cat > 01-hello/card.py <<'EOF'
name = "Omar"
city = "Lyon"
likes = "chess"
line = "===================="

print(line)
print("Name:", city)
print("City:", name)
print("Likes:", likes)
print(line)
EOF
