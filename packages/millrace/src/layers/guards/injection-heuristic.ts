import { misuse } from '../../values/errors.js';
import type { Interceptor } from '../../seams/interceptor.js';
import { defined, isRecord } from '../../values/json.js';
import { checkOptions, isText, type Rule } from '../../values/options.js';
import { isPositive } from '../traffic/token-bucket.js';
import { guardInput, type InputGuardOptions, inputGuardRules, readingsOf } from './guard-input.js';
import { normalizeText, withoutMarks } from './lists.js';

export interface InjectionHeuristicOptions extends InputGuardOptions {
  /** Total weight of signals from which input is rejected. Default: 3. */
  readonly threshold?: number | undefined;
  readonly extra?: readonly InjectionPattern[] | undefined;
}

/**
 * Rejects input whose `injectionSignals` reach a total weight. A heuristic: easy to evade, and sometimes wrong about
 * harmless text, such as an article on injections. It stops crude attempts and secures nothing: limit what a call's
 * tools can do. To log instead, or for tool results, call `injectionSignals` in your own guard.
 */
export const injectionHeuristic = (options: InjectionHeuristicOptions = {}): Interceptor => {
  checkOptions('injectionHeuristic()', options, rules);
  const { threshold = 3, extra = [], ...named } = options;
  checkExtra(extra);
  return guardInput(
    (asked) => {
      const signals = readingsOf(asked)
        .map((text) => injectionSignals(text, extra))
        .reduce<readonly InjectionSignal[]>(heavier, []);
      const weight = weightOf(signals);
      if (weight < threshold) return true;
      const list = signals.map((it) => `${it.name} ${it.weight}`).join(', ');
      return {
        allowed: false,
        reason: `its signals weigh ${weight} (${list}); the limit is ${threshold}`,
      };
    },
    { name: 'injectionHeuristic', history: true, ...defined(named) },
  );
};

const weightOf = (signals: readonly InjectionSignal[]): number =>
  signals.reduce((sum, { weight }) => sum + weight, 0);

const heavier = (a: readonly InjectionSignal[], b: readonly InjectionSignal[]) =>
  weightOf(b) > weightOf(a) ? b : a;

const checkExtra = (extra: readonly unknown[]): void => {
  for (const it of extra) {
    const isWhole =
      isRecord(it) && typeof it['name'] === 'string' && it['pattern'] instanceof RegExp;
    if (!isWhole) {
      throw misuse(
        "injectionHeuristic(): every entry of 'extra' must be { name, pattern, weight? } with a RegExp, such as { name: 'codeword', pattern: /xyzzy/i }.",
      );
    }
    checkOptions("injectionHeuristic(): one of 'extra'", it, extraRules);
    const { pattern } = it;
    // A stateful pattern would accept every other text.
    if (pattern instanceof RegExp && (pattern.global || pattern.sticky)) {
      throw misuse(
        `injectionHeuristic(): ${String(pattern)} is stateful. Remove its flags 'g' and 'y'.`,
      );
    }
  }
};

const isRegExp: Rule = [(value) => value instanceof RegExp, 'a RegExp'];

const extraRules: Readonly<Record<keyof InjectionPattern, Rule>> = {
  name: isText,
  pattern: isRegExp,
  weight: isPositive,
};

const rules: Readonly<Record<keyof InjectionHeuristicOptions, Rule>> = {
  ...inputGuardRules,
  threshold: isPositive,
  extra: [Array.isArray, 'a list of { name, pattern, weight? }'],
};

export interface InjectionSignal {
  readonly name: string;
  readonly weight: number;
}

export interface InjectionPattern {
  readonly name: string;
  /** Tested on the raw text and on the normalized text. Must not have the flags `g` or `y`. */
  readonly pattern: RegExp;
  /** Default: 3. */
  readonly weight?: number;
}

/**
 * Lists the signs of a prompt injection in text, each once, with its weight:
 *
 * | name               | weight | matches                                                                         |
 * | ------------------ | ------ | ------------------------------------------------------------------------------- |
 * | `override`         | 3      | an order to ignore or forget earlier instructions, in nineteen languages        |
 * | `promptRequest`    | 3      | a request for the system prompt, in eight languages                             |
 * | `persona`          | 3      | a persona without rules: developer mode, DAN, “you have no restrictions”          |
 * | `encodedOrders`    | 3      | base64 or hexadecimal text, with an order to decode and obey it                 |
 * | `hiddenText`       | 3      | text in invisible tags or variation selectors                                   |
 * | `chatTokens`       | 2      | turn separators of chat templates: `<\|im_start\|>`, `[INST]`, `<system>`       |
 * | `hiddenCharacters` | 2      | invisible characters within Latin words, bidirectional overrides                |
 * | `roleMarkers`      | 1      | a line such as `System:`                                                        |
 *
 * A sign found only in quotation marks or backticks weighs one less: the text may be about it. It recognizes words, not
 * meaning: other words, languages or letters evade it, and harmless text may match. Use it to log, to ask for
 * confirmation, or to stop crude attempts, in addition to tools with few rights, approval, and untrusted results. The
 * list changes. Runs in linear time.
 */
export const injectionSignals = (
  text: string,
  extra: readonly InjectionPattern[] = [],
): readonly InjectionSignal[] => {
  const plain = normalizeText(text);
  const lower = withoutMarks(plain.toLowerCase());
  const { decoding, obeying, roleMarkers, ...quotable } = signalPatterns;
  const namedWeight = weighed(plain, [namedPersona], 3);
  const isEncoded = encodedText.test(plain) && [decoding, obeying].every((it) => some(lower, it));
  return [
    { name: 'override', weight: weighed(lower, quotable.override, 3) },
    { name: 'promptRequest', weight: weighed(lower, quotable.promptRequest, 3) },
    { name: 'persona', weight: Math.max(weighed(lower, quotable.persona, 3), namedWeight) },
    { name: 'encodedOrders', weight: isEncoded ? 3 : 0 },
    { name: 'hiddenText', weight: hiddenText.test(text) ? 3 : 0 },
    { name: 'chatTokens', weight: weighed(lower, quotable.chatTokens, 2) },
    { name: 'hiddenCharacters', weight: hiddenCharacters.test(text) ? 2 : 0 },
    { name: 'roleMarkers', weight: some(lower, roleMarkers) ? 1 : 0 },
    ...extra.map(({ name, pattern, weight = 3 }) => ({
      name,
      weight: pattern.test(text) || pattern.test(plain) ? weight : 0,
    })),
  ].filter(({ weight }) => weight > 0);
};

/** The weight of a sign: one less if all matches are quoted, 0 without a match. */
const weighed = (text: string, patterns: readonly RegExp[], weight: number): number => {
  let found = 0;
  for (const pattern of patterns) {
    for (const { 0: match, index } of text.matchAll(pattern)) {
      if (!isQuoted(text, index, index + match.length)) return weight;
      found = weight - 1;
    }
  }
  return found;
};

const isQuoted = (text: string, start: number, end: number): boolean =>
  opensQuote.test(text.slice(Math.max(0, start - 60), start)) &&
  closesQuote.test(text.slice(end, end + 200));

const opensQuote = /["“„«「『`‘][^"”“»」』`’]*$/;
const closesQuote = /["”“»」』`’]/;

const some = (text: string, patterns: readonly RegExp[]): boolean =>
  patterns.some((pattern) => text.search(pattern) !== -1);

interface Words {
  readonly verbs: string;
  readonly earlier: string;
  readonly orders: string;
}

/** Bounded: an unlimited gap would take quadratic time. */
const gap = '[^.!?。！？]{0,40}?';
/** Scripts without spaces have no word boundaries. */
const bounded = (words: string): string => `(?<![\\p{L}\\p{M}])(?:${words})(?![\\p{L}\\p{M}])`;
/** “Do not forget your instructions” means the opposite; “why does it ignore them” is not an order. */
const negation =
  '(?<!(?:not|never|n.t|non|não|не|ні|nie|jangan|đừng|لا|models?|llms?|gpt|it|they|users|attackers) )';
const open = (words: string): string => `(?:${words})`;

const inOrder = (...parts: readonly string[]): string => parts.join(gap);
const inShortOrder = (...parts: readonly string[]): string => parts.join(gap.replace('40', '12'));

/** Most languages put the verb first; the object stands before or after its adjective. */
const command = (verbs: string): string => `${negation}${bounded(verbs)}`;
const verbFirst = ({ verbs, earlier, orders }: Words): readonly string[] => [
  inOrder(command(verbs), bounded(earlier), bounded(orders)),
  inOrder(command(verbs), bounded(orders), bounded(earlier)),
];
const verbLast = ({ verbs, earlier, orders }: Words): readonly string[] => [
  inOrder(open(earlier), open(orders), open(verbs)),
];

/** Compiles a pattern for normalized lower-case text. */
const pattern = (source: string): RegExp =>
  new RegExp(withoutMarks(source.normalize('NFKC')), 'gu');

const english: readonly string[] = [
  // “Ignore my previous instructions” is about the user's own words.
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

const orders: readonly RegExp[] = Object.values(languages).flat().map(pattern);

const hiddenPrompt =
  '(?:system[ -]?(?:prompts?|messages?|instructions?)|(?:initial|original|hidden|secret|internal|exact|full) (?:prompts?|instructions?)|developer (?:message|instructions?)|(?:prompt|instructions?) (?:verbatim|word for word))';

const promptRequests: readonly string[] = [
  `\\b(?:show|reveal|print|repeat|output|display|tell|give|share|leak|write|dump|expose|recite|quote|summari[sz]e|list|paste|send)\\b[^.!?]{0,30}?\\byour\\b[^.!?]{0,20}?${hiddenPrompt}`,
  `\\bwhat(?:'s|’s| is| are| was| were)\\b[^.!?]{0,12}?\\byour\\b[^.!?]{0,12}?${hiddenPrompt}`,
  '\\b(?:repeat|print|output|recite|echo|copy)\\b[^.!?]{0,20}?\\b(?:everything|all|words?|text|content)\\b[^.!?]{0,15}?\\babove\\b(?! the (?:line|image|table|figure))',
  '(?:zeig|nenn|verrat|gib|wiederhol|schreib)\\p{L}{0,3}[^.!?]{0,30}?\\bdein\\p{L}{0,2}\\b[^.!?]{0,20}?system-?(?:prompt|anweisung|nachricht)',
  '(?:affiche|montre|révèle|donne|répète|écris)[^.!?]{0,25}?(?:ton|ta|tes|votre|vos) [^.!?]{0,15}?(?:prompt (?:du )?système|instructions? (?:système|initiale|cachée|secrète)|prompt initial)',
  '(?:muestra|muéstrame|revela|dime|repite|imprime|escribe)[^.!?]{0,25}?(?:tu|tus|su|sus) [^.!?]{0,15}?(?:prompt (?:del? )?sistema|instrucciones (?:iniciales|del sistema|ocultas|secretas)|mensaje del sistema)',
  '(?:покажи|выведи|раскрой|повтори|напиши)(?:те)?[^.!?]{0,25}?(?:сво\\p{L}{1,2}|тво\\p{L}{1,2}|ваш\\p{L}{0,2}) [^.!?]{0,15}?(?:системн\\p{L}{2,3} (?:промпт|инструкци|сообщени)|начальн\\p{L}{2,3} инструкци|скрыт\\p{L}{2,3} инструкци)',
  '(?:显示|顯示|告诉我|告訴我|输出|輸出|重复|透露|泄露|打印|展示)[^。！？]{0,6}?(?:你|您)的?[^。！？]{0,6}?(?:系统提示|系統提示|初始指令|系统指令|系統指令|隐藏指令)',
  '(?:システムプロンプト|初期指示|内部指示)(?:の(?:全文|内容|すべて))?を?(?:そのまま|すべて|全て|全部)?(?:表示し|教え|出力|見せ|開示)',
  '(?:시스템 ?프롬프트|초기 지침|숨겨진 지침)(?:를|을)? ?(?:모두|전부|그대로)? ?(?:보여|알려|출력|공개)',
];

const noRules =
  '(?:without (?:any )?(?:restrictions|rules|limits|limitations|filters|guidelines|ethics)|(?:with |has |have )?no (?:restrictions|rules|filters|guidelines|limitations|ethical|moral)|free (?:from|of) (?:all |any )?(?:restrictions|rules|filters|guidelines)|unrestricted|unfiltered|uncensored|jailbroken)';

const personas: readonly string[] = [
  '\\byou(?:.re| are| will be| must be)?(?: now| going to be)? (?:in|running in|entering|operating in|acting in|working in) (?:developer|dev|debug|god|sudo|root|admin|jailbreak|dan|unrestricted|unfiltered|maintenance|opposite) mode\\b',
  '\\b(?:act|respond|answer|behave|pretend|reply)\\b[^.!?]{0,40}?\\b(?:developer|god|debug|dan|jailbreak|unrestricted) mode\\b',
  '\\b(?:enter|switch to|activate|enable|simulate) (?:the )?(?:dan|jailbreak|unrestricted|unfiltered|uncensored) mode\\b',
  '\\bdo anything now\\b',
  `\\b(?:you are|you.re|act as|become|pretend to be|pretend you are|pretend you have|pretend that you|role-?play as|simulate|respond as|as if you)\\b[^.!?]{0,50}?\\b${noRules}\\b`,
  '\\byour (?:restrictions|rules|filters|guidelines|limitations|safety (?:rules|filters|guidelines)) (?:no longer apply|do not apply|are (?:now )?(?:lifted|disabled|removed|suspended|off))\\b',
  '\\bdu bist (?:jetzt |nun |ab sofort )?im (?:entwickler|debug|gott)-?modus\\b',
  '\\btu es (?:maintenant |désormais )?en mode (?:développeur|debug|sans restriction)',
  '\\b(?:estás|eres) (?:ahora )?(?:en )?(?:el )?modo (?:desarrollador|depuración|sin restricciones|dios)\\b',
  'ты (?:теперь |сейчас )?(?:работаешь |находишься )?в режиме (?:разработчика|отладки|без ограничений)',
  '(?:你|您)(?:现在|現在)?(?:已经|已經)?(?:处于|處於|进入|進入|是)了?(?:开发者|開發者|越狱|越獄|无限制|無限制)模式',
];

const chatTokens: readonly string[] = [
  '<\\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|start_header_id|end_header_id|eot_id|begin_of_text|end|start|message|channel)\\|>',
  '\\[/?inst\\]',
  '<</?sys>>',
  '<(?:start|end)_of_turn>',
  '</?(?:system|system_prompt|system-reminder|sys)>',
  '\\[/?system\\]',
  '(?:^|\\n)#{2,4} ?(?:system|instructions?|new instructions?) ?:',
  '<\\|(?:begin▁of▁sentence|end▁of▁sentence)\\|>',
];

const roleMarkers: readonly string[] = [
  '(?:^|\\n) ?(?:[*_#>-]{1,3} ?)?(?:system|developer|system (?:message|prompt|override|instructions?)|new instructions?|admin|root) ?(?:[*_]{1,2})? ?:',
  '(?:<\\|im_start\\|>|<\\|start_header_id\\|>|<\\|start\\|>) ?(?:system|developer|assistant)\\b',
  '<\\|(?:system|developer)\\|>',
  '<<sys>>',
  '(?:end of|begin) (?:user input|system prompt|system message|new instructions)',
];

const decoding: readonly string[] = [
  '\\b(?:de-?code[ds]?|decoding|decipher|unscramble|base-?64|hexadecimal|rot-?13)\\b|\\bhex\\b',
  'dekodier|entschlüssel|décode|decodifi|декодир|расшифр|解码|解碼|デコード|복호|디코딩',
];

const obeying: readonly string[] = [
  '\\b(?:follow|obey|execute|carry out|comply with|do|act on|act upon|perform)\\b (?:exactly )?(?:what(?:ever)? (?:it|this|that|they)|the (?:\\p{L}{1,12} )?(?:instructions?|orders?|commands?|message|request)|its (?:instructions?|orders?|content)|(?:these|those|any|all) (?:instructions?|orders?|commands?)|as it says|as instructed)',
  'befolge|führe [^.!?]{0,20}aus|suis (?:les|ses)|exécute (?:les|ses)|sigue (?:las|sus)|ejecuta (?:las|sus)|выполни|следуй|并执行|並執行|然后执行|按照.{0,6}执行|に従っ|を実行|따르|실행하',
];

const compiled = (sources: readonly string[]): readonly RegExp[] => sources.map(pattern);

const signalPatterns = {
  override: orders,
  promptRequest: compiled(promptRequests),
  persona: compiled(personas),
  chatTokens: compiled(chatTokens),
  roleMarkers: compiled(roleMarkers),
  decoding: compiled(decoding),
  obeying: compiled(obeying),
};

/** Case-sensitive: `Dan` is an ordinary name. */
const namedPersona =
  /\b(?:[Yy]ou are|[Aa]ct as|[Bb]ecome|[Rr]espond as|[Pp]retend to be|[Rr]ole-?play as)\b[^.!?]{0,40}?\bDAN\b/g;

const encodedText = /[a-z0-9+/_-]{40}|(?:[0-9a-f]{2}[ :]){16}|(?:\\x[0-9a-f]{2}){12}/i;

/** Direction overrides, and invisible characters other than soft hyphens within a Latin word. */
const hiddenCharacters =
  /[\u202a-\u202e\u2066-\u2069]|[a-z](?!\u00ad)\p{Default_Ignorable_Code_Point}{1,4}[a-z]/iu;

/** Invisible tag letters outside of flags, and runs of selectors: text that only a model reads. */
const hiddenText =
  /(?<![\u{1f3f4}\u{e0020}-\u{e007e}])[\u{e0020}-\u{e007e}]|[\u{e0020}-\u{e007e}]{8}|[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]{6}/u;
