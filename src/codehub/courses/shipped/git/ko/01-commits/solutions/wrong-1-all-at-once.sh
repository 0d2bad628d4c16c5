# "git add ."으로 두 파일이 모두 첫 커밋에 들어갔습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
cd git-01/trip
git init -q -b main
git add .
git commit -q -m "수정"
sed 's/셋째 날: ???/셋째 날: 배 타기/' plan.txt > plan.new
mv plan.new plan.txt
git add .
git commit -q -m "수정"
