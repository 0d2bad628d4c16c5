# 세 번째 변경을 저장만 하고 add하지 않아 커밋할 것이 없었습니다.
git config --global user.name "김지우"
git config --global user.email "jiwoo@example.com"
cd git-01/trip
git init -q -b main
git add plan.txt
git commit -q -m "이틀 일정 계획"
git add packing.txt
git commit -q -m "준비물 목록 작성"
sed 's/셋째 날: ???/셋째 날: 배 타고 섬에 가기/' plan.txt > plan.new
mv plan.new plan.txt
git commit -q -m "셋째 날은 섬으로" || true
