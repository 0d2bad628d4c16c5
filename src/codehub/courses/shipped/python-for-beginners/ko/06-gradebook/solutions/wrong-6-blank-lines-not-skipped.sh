cat > 06-gradebook/gradebook.py <<'EOF'
def average(numbers):
    if len(numbers) == 0:
        return 0
    return sum(numbers) / len(numbers)


def read_scores(path):
    scores = {}
    with open(path) as file:
        for line in file:
            line = line.strip()
            if True:
                parts = line.split(",")
                name = parts[0]
                if name not in scores:
                    scores[name] = []
                scores[name].append(int(parts[1]))
    return scores


scores = read_scores("scores.txt")
best_name = ""
best = -1
with open("report.txt", "w") as file:
    for name in scores:
        result = average(scores[name])
        file.write(f"{name}: {round(result, 1)}\n")
        if result > best:
            best = result
            best_name = name
    file.write(f"1등: {best_name}\n")
EOF
