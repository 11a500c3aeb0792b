import { withoutMarks } from './cleaned.js';

interface Words {
  readonly verbs: string;
  /** What stands before. */
  readonly earlier: string;
  /** What is to be passed over. */
  readonly orders: string;
}

/** At most so much may stand between them: with no bound a long text would take quadratic time. */
const gap = '[^.!?。！？]{0,40}?';
/** In scripts without spaces words have no bounds. */
const bounded = (words: string): string => `(?<![\\p{L}\\p{M}])(?:${words})(?![\\p{L}\\p{M}])`;
/** «Do not forget your instructions» is the contrary, and «why does it ignore them» no order. */
const negation =
  '(?<!(?:not|never|n.t|non|não|не|ні|nie|jangan|đừng|لا|models?|llms?|gpt|it|they|users|attackers) )';
const open = (words: string): string => `(?:${words})`;

const inOrder = (...parts: readonly string[]): string => parts.join(gap);
const inShortOrder = (...parts: readonly string[]): string => parts.join(gap.replace('40', '12'));

/** Verb first, as most have it: what is passed over stands before or behind its adjective. */
const command = (verbs: string): string => `${negation}${bounded(verbs)}`;
const verbFirst = ({ verbs, earlier, orders }: Words): readonly string[] => [
  inOrder(command(verbs), bounded(earlier), bounded(orders)),
  inOrder(command(verbs), bounded(orders), bounded(earlier)),
];
const verbLast = ({ verbs, earlier, orders }: Words): readonly string[] => [
  inOrder(open(earlier), open(orders), open(verbs)),
];

/** Makes a pattern that finds all in texts that are cleaned and in lower case. */
export const pattern = (source: string): RegExp =>
  new RegExp(withoutMarks(source.normalize('NFKC')), 'gu');

const english: readonly string[] = [
  // «Ignore my previous instructions» takes back one's own words.
  ...[
    [
      'ignore|disregard|forget|do not follow|don.t follow|stop following|pay no attention to|do not obey|don.t obey',
      'previous|prior|above|earlier|preceding|foregoing|initial|original|system|your',
      'instructions?|prompts?|directives?|directions|guidelines',
    ],
    [
      'ignore|disregard|forget|do not follow|don.t follow|stop following',
      '(?:all|any)(?: of)?(?: the| your)? (?:previous|prior|above|earlier)|your',
      'rules|restrictions|constraints|policies|training|programming|messages',
    ],
    [
      'override',
      'previous|prior|above|earlier|preceding',
      'instructions?|prompts?|directives?|guidelines',
    ],
    [
      'override|bypass',
      'your',
      'rules|restrictions|constraints|policies|programming|filters|safety',
    ],
  ].map(([verbs = '', earlier = '', orders = '']) =>
    inOrder(`${command(verbs)}(?! (?:all |any |of )*my )`, bounded(earlier), bounded(orders)),
  ),
  `${command('ignore|disregard|forget')} (?:all |everything |anything |whatever )(?:of )?(?:that )?(?:(?:is |was |said |written )*(?:above|before)(?=[ ,;:]*(?:[.!]|$|and |instead|this))|you (?:were|have been|.ve been) (?:told|taught|instructed))`,
];

/** By language, so that a false alarm can be found. */
const languages: Readonly<Record<string, readonly string[]>> = {
  english,
  german: verbFirst({
    verbs:
      'ignorier\\p{L}{0,3}|vergiss(?! nicht)|vergesst(?! nicht)|vergessen sie|missachte\\p{L}?|übergeh\\p{L}{0,2}',
    earlier:
      '(?:vorherig|bisherig|vorig|vorangegangen|vorhergehend|obig|früher|ursprünglich)\\p{L}{0,2}|alle|sämtliche|deine|ihre|zuvor|oben',
    orders:
      'anweisung(?:en)?|instruktion(?:en)?|vorgaben|befehle?|regeln|system-?prompts?|prompts?|richtlinien',
  }),
  french: verbFirst({
    verbs:
      'ignore[rz]?|oublie[rz]?(?! pas )|(?:ne )?(?:tiens|tenez) (?:pas |aucun )?compte|(?:fais|faites) abstraction',
    earlier: '(?:précédente?|antérieure?|initiale?)s?|ci-dessus|toutes|tes|vos|d.avant',
    orders: 'instructions?|consignes?|directives?|règles?|ordres',
  }),
  spanish: verbFirst({
    verbs:
      'ignor(?:a|e|ad|en|ar)|olvida(?:d|r|te)?|olvide|ha[zg](?:a|an)? caso omiso|no sigas|descarta',
    earlier: 'anterior(?:es)?|previ[ao]s?|de arriba|todas|tus|sus',
    orders: 'instrucci(?:ón|ones)|indicaciones|órdenes|reglas|directrices',
  }),
  portuguese: verbFirst({
    verbs: 'ignor(?:a|e|em|ar)|esque(?:ce|ça|cer)|desconsider(?:a|e|em|ar)',
    earlier: 'anterior(?:es)?|prévi[ao]s?|acima|todas|suas|tuas',
    orders: 'instruç(?:ão|ões)|instrucoes|orientações|ordens|regras|diretrizes',
  }),
  italian: verbFirst({
    verbs: 'ignor(?:a|are|ate|i)|dimentica(?:re|te)?|non seguire|trascura(?:re|te)?',
    earlier: 'precedent[ei]|(?:di |qui )?sopra|tutte|tue|iniziali',
    orders: 'istruzion[ei]|indicazioni|regole|direttive|ordini',
  }),
  dutch: verbFirst({
    verbs: 'negeer|vergeet(?! niet)|negeren',
    earlier: 'eerdere|vorige|voorgaande|bovenstaande|alle|je|jouw|uw',
    orders: 'instructies?|aanwijzingen|opdrachten|regels|richtlijnen',
  }),
  swedish: verbFirst({
    verbs: 'ignorera|glöm(?! inte)|bortse från|strunta i',
    earlier: 'tidigare|föregående|ovanstående|alla|dina',
    orders: 'instruktion(?:er|erna)|anvisningar(?:na)?|regler(?:na)?|order',
  }),
  polish: verbFirst({
    verbs: 'z?ignoruj(?:cie)?|zapomnij(?:cie)?|pomiń|nie przestrzegaj',
    earlier: '(?:poprzedni|wcześniejsz|powyższ|wszystki|swoj)\\p{L}{0,3}',
    orders: '(?:instrukcj|polece|wytyczn|zasad|reguł)\\p{L}{0,4}',
  }),
  russian: verbFirst({
    verbs: '(?:про)?игнорируй(?:те)?|забудь(?:те)?|не обращай(?:те)? внимания на|не следуй(?:те)?',
    earlier: '(?:предыдущ|прошл|предшествующ|прежн|вышеуказанн|сво)\\p{L}{0,3}|ранее|выше|все|всех',
    orders: '(?:инструкци|указани|правил|команд|промпт)\\p{L}{0,3}',
  }),
  ukrainian: verbFirst({
    verbs: '(?:про)?ігноруй(?:те)?|забудь(?:те)?|не зважай(?:те)? на',
    earlier: '(?:попередн|минул|сво)\\p{L}{0,3}|усі|всі|вище',
    orders: '(?:інструкці|вказівк|правил|команд)\\p{L}{0,3}',
  }),
  indonesian: verbFirst({
    verbs: 'abaikan|lupakan|jangan ikuti',
    earlier: 'sebelumnya|di atas|semua|terdahulu',
    orders: 'instruksi|perintah|petunjuk|aturan',
  }),
  vietnamese: verbFirst({
    verbs: 'bỏ qua|phớt lờ|quên(?: đi)?|đừng (?:làm )?theo',
    earlier: 'trước(?: đó| đây)?|ở trên|bên trên|tất cả|mọi',
    orders: 'hướng dẫn|chỉ thị|chỉ dẫn|mệnh lệnh|quy tắc',
  }),
  arabic: verbFirst({
    verbs: 'تجاهل|تجاهلي|انس|انسى|إنس|لا تتبع',
    earlier: 'السابقة|السابق|أعلاه|جميع|كل|كافة',
    orders: '(?:ال)?(?:تعليمات|أوامر|توجيهات|قواعد)',
  }),
  turkish: verbLast({
    earlier: 'önceki|yukarıdaki|tüm|bütün|daha önceki',
    orders: 'talimat|yönerge|komut|kural',
    verbs: 'yok ?say|görmezden gel|unut|dikkate alma|göz ardı et',
  }),
  hindi: verbLast({
    earlier: 'पिछले|पिछली|पहले|ऊपर|सभी|उपरोक्त',
    orders: 'निर्देश|आदेश|नियम|हिदायत',
    verbs: 'अनदेखा|नज़रअंदाज़|नजरअंदाज|नज़रअंदाज|भूल|उपेक्षा|न मान',
  }),
  chinese: [
    ...['忽略|忽视|忽視|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守|不要遵循'].flatMap((verbs) => {
      const earlier = '之前|以前|先前|此前|前面|上面|以上|上述|所有|一切|全部|你的';
      const orders = '指令|指示|提示|说明|說明|规则|規則|命令|设定|設定|要求';
      return [
        inShortOrder(open(verbs), open(earlier), open(orders)),
        inShortOrder(open('把|将|將|请|請'), open(earlier), open(orders), open(verbs)),
      ];
    }),
  ],
  japanese: verbLast({
    earlier: 'これまで|今まで|以前|前|上記|先ほど|すべて|全て|全部',
    orders: '指示|命令|プロンプト|ルール|指令|設定|制約',
    verbs: '無視|忘れ|従わな|破棄',
  }),
  korean: verbLast({
    earlier: '이전|위의|앞의|앞선|지금까지|기존|모든',
    orders: '지시|명령|프롬프트|지침|규칙|설정',
    verbs: '무시|잊',
  }),
};

/** Orders to pass over what was said before, in nineteen languages. */
export const orders: readonly RegExp[] = Object.values(languages).flat().map(pattern);
