/** Texts of one kind each, as conversations hold them. */
export const samples = {
  english: `The mill stood where the stream left the hills, and for as long as anybody could remember it had ground the corn of seven villages. In dry summers the miller closed the sluice at dusk, let the pond fill during the night, and opened it again before the first carts came down the road. Nobody had ever written these habits into a book; they were passed on with the keys, the ledger and the old grey horse.

When the new owner arrived in October, she walked along the channel with a notebook and asked a great many questions. Why was the upper gate never closed completely? Who had decided that the wheel should rest on Thursdays? The answers were friendly but vague, and most of them ended with a shrug. So she measured: the height of the water each morning, the hours of work, the sacks of flour that left the yard. After six weeks she understood two things. The gate was left open because it leaked anyway, and a repair would pay for itself within a single winter. The Thursdays, however, turned out to be wise: the bearing needed a day to cool, and whoever ignored that would replace it every other year.

"You could have told me," she said to the miller's boy, who had watched all of this from the wall. He thought about it for a while. "You never asked what breaks," he said. "You only asked why we do it."`,

  code: `import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

interface Reading {
  readonly station: string;
  readonly takenAt: Date;
  readonly levelMm: number;
}

const parseLine = (line: string, index: number): Reading => {
  const [station, takenAt, level] = line.split(';').map((part) => part.trim());
  if (station === undefined || takenAt === undefined || level === undefined) {
    throw new Error(\`Line \${index + 1} has too few columns: "\${line}"\`);
  }
  const levelMm = Number.parseFloat(level.replace(',', '.'));
  if (!Number.isFinite(levelMm)) throw new Error(\`Line \${index + 1}: "\${level}" is no number\`);
  return { station, takenAt: new Date(takenAt), levelMm };
};

/** Groups readings by station, and keeps the newest \`limit\` of each. */
export async function latest(folder: string, limit = 10): Promise<Map<string, Reading[]>> {
  const text = await readFile(join(folder, 'readings.csv'), 'utf8');
  const byStation = new Map<string, Reading[]>();
  for (const [index, line] of text.split('\\n').entries()) {
    if (line === '' || line.startsWith('#')) continue;
    const reading = parseLine(line, index);
    const list = byStation.get(reading.station) ?? [];
    list.push(reading);
    byStation.set(reading.station, list);
  }
  for (const list of byStation.values()) {
    list.sort((a, b) => b.takenAt.getTime() - a.takenAt.getTime());
    list.length = Math.min(list.length, limit);
  }
  return byStation;
}

if (process.argv[2] !== undefined) {
  const result = await latest(process.argv[2]);
  console.log([...result].map(([name, list]) => \`\${name}: \${list.length}\`).join('\\n'));
}
`,

  json: JSON.stringify({
    status: 'ok',
    page: { number: 3, size: 4, total: 1187, next: '/v2/stations?page=4&size=4' },
    stations: [
      {
        id: 'st_0041',
        name: 'Upper gate',
        position: { lat: 59.91387, lon: 10.75225 },
        sensors: [
          { kind: 'level', unit: 'mm', last: 1432.5, at: '2025-03-14T09:26:53Z', ok: true },
          { kind: 'flow', unit: 'l/s', last: 88.25, at: '2025-03-14T09:26:50Z', ok: true },
        ],
        tags: ['upstream', 'manual'],
        maintainer: null,
      },
      {
        id: 'st_0042',
        name: 'Mill pond',
        position: { lat: 59.9141, lon: 10.7531 },
        sensors: [
          { kind: 'level', unit: 'mm', last: 2210, at: '2025-03-14T09:27:01Z', ok: true },
          { kind: 'temperature', unit: 'C', last: 6.8, at: '2025-03-14T09:25:44Z', ok: false },
        ],
        tags: [],
        maintainer: { name: 'R. Holm', phone: '+47 555 01 234' },
      },
      {
        id: 'st_0057',
        name: 'Tail water',
        position: { lat: 59.91502, lon: 10.75498 },
        sensors: [{ kind: 'flow', unit: 'l/s', last: 91.5, at: '2025-03-14T09:26:12Z', ok: true }],
        tags: ['downstream', 'public', 'camera'],
        maintainer: null,
      },
    ],
    warnings: [{ code: 'STALE_VALUE', path: 'stations[1].sensors[1]', ageSeconds: 917 }],
  }),

  chinese: `这座水磨坊建在山脚下的小河旁边，已经有两百多年的历史了。每年秋收以后，附近七个村子的农民都会赶着马车来这里磨面。磨坊主人每天黎明之前起床，先检查水闸，再看看水位够不够高，然后才慢慢打开闸门，让水流推动巨大的木轮。夏天雨水少的时候，他晚上关闭闸门，把水存在池塘里，第二天早上再放出来使用。

去年十月，一位新主人买下了磨坊。她沿着水渠走了很久，一边走一边在本子上记录各种问题：为什么上游的闸门从来不完全关闭？为什么星期四水轮总是停着不转？村里人回答得很客气，但是谁也说不清楚真正的原因。于是她开始自己测量，每天早晨记下水位的高度、工作的小时数，还有运出去的面粉袋数。六个星期以后，她终于明白了两件事情：闸门开着是因为它本来就漏水，而修理的费用一个冬天就可以赚回来；星期四休息却是非常聪明的做法，因为轴承需要一天时间冷却，不这样做的人每隔一年就得更换一次。

磨坊里的小伙子坐在墙头上，把这一切都看在眼里。她问他：“你为什么不早点告诉我呢？”他想了一会儿，回答说：“你从来没有问过什么东西会坏，你只是问我们为什么这样做。”`,

  japanese: `その水車小屋は、川が山を離れるところに建っていて、誰も覚えていないほど昔から七つの村の麦をひいてきました。雨の少ない夏には、主人は夕方に水門を閉め、夜のあいだに池に水をため、朝の荷車が坂道を下りてくる前にもう一度開けるのでした。こうした習慣はどこにも書かれておらず、鍵と帳簿と年老いた馬といっしょに、次の人へと受け継がれてきただけです。

十月に新しい持ち主がやって来ると、彼女はノートを持って水路に沿って歩き、たくさんの質問をしました。なぜ上の水門は完全に閉めないのですか。木曜日に水車を休ませると決めたのは誰ですか。返ってくる答えは親切でしたが、はっきりしないものばかりでした。そこで彼女は自分で測ることにしました。毎朝の水位、働いた時間、運び出された小麦粉の袋の数。六週間たって、二つのことがわかりました。水門が開いているのは、どうせ水が漏れるからで、修理の費用は一冬で取り戻せます。けれども木曜日の休みは賢いやり方でした。軸受けを冷ますには一日が必要で、それを守らない人は二年ごとに交換しなければならないのです。

「教えてくれればよかったのに」と彼女が言うと、塀の上からずっと見ていた少年は少し考えてから答えました。「何が壊れるのかは、一度も聞かなかったでしょう。」`,

  korean: `그 물레방아는 시냇물이 산을 벗어나는 곳에 서 있었고, 아무도 기억하지 못할 만큼 오래전부터 일곱 마을의 곡식을 빻아 왔습니다. 비가 적게 오는 여름이면 주인은 해 질 무렵에 수문을 닫아 밤사이 연못에 물을 채웠다가, 첫 수레가 길을 내려오기 전에 다시 열었습니다. 이런 습관은 어떤 책에도 적혀 있지 않았고, 열쇠와 장부와 늙은 말과 함께 다음 사람에게 전해질 뿐이었습니다.

시월에 새 주인이 왔을 때, 그녀는 공책을 들고 물길을 따라 걸으며 많은 질문을 했습니다. 왜 위쪽 수문은 완전히 닫지 않나요? 목요일에 물레방아를 쉬게 하자고 정한 사람은 누구인가요? 사람들의 대답은 친절했지만 분명하지 않았습니다. 그래서 그녀는 직접 재어 보기로 했습니다. 매일 아침 물의 높이와 일한 시간, 마당에서 나간 밀가루 자루의 수를 적었습니다. 여섯 주가 지나자 두 가지를 알게 되었습니다. 수문을 열어 둔 것은 어차피 물이 새기 때문이었고, 수리비는 겨울 한 번이면 되찾을 수 있었습니다. 그러나 목요일의 휴식은 현명한 일이었습니다. 베어링이 식으려면 하루가 필요했고, 그것을 지키지 않는 사람은 두 해마다 새것으로 바꿔야 했습니다.

"미리 말해 주지 그랬니?" 하고 그녀가 묻자, 담 위에서 모든 것을 지켜보던 소년은 잠시 생각하더니 대답했습니다. "무엇이 고장 나는지는 한 번도 묻지 않으셨잖아요."`,

  emoji: `Good morning ☀️😀🎉 everybody! 👋🏽👋🏼👋 Today's plan 📋✨: coffee ☕☕☕, bread 🥖🥐, then the big release 🚀🚀🚀🔥🔥
👍👍👍 from Ana, 😂😂🤣 from Bo, ❤️🧡💛💚💙💜 from everyone else 🥳🎊🎈
Weather: 🌧️🌧️⛅🌤️☀️🌈 tomorrow ❄️⛄🥶 ... who is in? 🙋‍♀️🙋‍♂️🙋🏿
Team 👩‍💻👨‍💻👩🏽‍🔬👨‍🌾👩‍🚀 score 🥇🥈🥉🏆 lunch 🍕🍕🍣🍜🥗🍎🍌🍇🍓 dinner 🍝🍷🧀
Trip ✈️🗺️🏔️🏕️🚴‍♂️🚶‍♀️🏊⛵🎣 photos 📸📷🖼️ done ✅✅✅ failed ❌❌ waiting ⏳⏳⌛
Cats 🐱🐈🐈‍⬛😺😸😹 dogs 🐶🐕🦮🐩 birds 🐦🦉🦆🦅🐧 fish 🐟🐠🐡🦈🐳 plants 🌱🌲🌳🌴🌵🌷🌻🌼
Music 🎵🎶🎸🥁🎹🎻🎺 games 🎮🕹️🎲♟️🧩 sport ⚽🏀🏈⚾🎾🏐🏉🎱🏓🏸
Good night 🌙⭐🌟💫🌌😴💤🛌 and thanks 🙏🙏🙏 see you 😘😍🥰😎🤩 bye 👋👋`,

  numbers: `date,station,level_mm,flow_ls,temp_c,checksum
2025-03-01,41,1432.50,88.25,6.81,90817234
2025-03-02,41,1429.75,87.90,6.64,33190475
2025-03-03,41,1441.20,91.05,6.22,71025568
2025-03-04,41,1502.00,104.33,5.97,18840021
2025-03-05,41,1533.85,111.78,5.88,64002917
2025-03-06,41,1498.10,102.94,6.05,27459930
2025-03-07,41,1466.65,95.61,6.31,50183746
2025-03-08,42,2210.00,12.40,7.02,83651209
2025-03-09,42,2208.35,12.37,7.10,46720185
2025-03-10,42,2215.90,12.61,7.26,11938574
2025-03-11,42,2231.05,13.08,7.33,95047261
2025-03-12,42,2240.75,13.42,7.41,60284913
2025-03-13,42,2238.20,13.31,7.39,38816450
2025-03-14,57,871.15,91.50,5.76,74509382
2025-03-15,57,869.95,90.88,5.81,20671143
2025-03-16,57,874.60,92.27,5.70,89230617
2025-03-17,57,880.05,94.12,5.62,57194028
2025-03-18,57,902.30,99.86,5.48,42360795
2025-03-19,57,911.85,103.07,5.41,16872350
3.14159265358979 2.71828182845905 1.61803398874989 1.41421356237310 0.57721566490153
1000003 15485863 32452843 49979687 67867967 86028121 104395301 122949823 141650939
`,
} as const;

/** The kinds of texts there are. */
export type SampleName = keyof typeof samples;
