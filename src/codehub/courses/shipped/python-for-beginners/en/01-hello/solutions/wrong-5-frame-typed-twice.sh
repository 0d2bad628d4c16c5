cat > 01-hello/card.py <<'EOF'
name = "Omar"
city = "Lyon"
likes = "chess"

print("====================")
print("Name:", name)
print("City:", city)
print("Likes:", likes)
print("====================")
EOF
