# 홈 디렉터리에서 git init을 입력했습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
git init -q -b main
cd git-01/trip
git add plan.txt
git commit -q -m "이틀 일정 계획"
