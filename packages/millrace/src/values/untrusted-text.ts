/**
 * Cleans text of others before a model reads it. Idempotent, in linear time; legible text stays as it is.
 *
 * - Removes invisible characters, direction overrides and isolates, and control characters; joiners, direction marks and
 *   variation selectors stay if a script or an emoji needs them. Line separators become line breaks.
 * - Opens tokens of chat templates and tags of tool calls with another bracket, `‹|im_start|>` and `⟦INST]`, in any case
 *   and width, also if the end of the text cuts one off.
 * - Quotes lines that start with a label of a prompt, such as `Observation:` or `[Retrieved Context]`, with `> `.
 *
 * `labels` are more labels that no line may start with, such as translated ones; `false` quotes no line, for text that
 * starts none. Do not clean data that must stay exact, such as files to edit. Instructions in plain words stay.
 */
export const untrustedText = (
  text: string,
  { labels = [] }: { readonly labels?: readonly string[] | false } = {},
): string => {
  const clean = withoutTokens(withoutInvisible(text));
  return labels === false ? clean : withQuotedLabels(clean, labels.map(folded));
};

// ---------------------------------------------------------------- invisible characters

const lineBreaks = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;

/** Characters that may have to go: none of them has a shape of its own. */
const unseen = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
const joiner = /[\u200c\u200d]/u;
const mark = /[\u061c\u200e\u200f]/u;
const emojiSelector = /[\ufe0e\ufe0f]/u;
const selector = /[\ufe00-\ufe0d\u{e0100}-\u{e01ef}]/u;
const mongolianSelector = /[\u180b-\u180f]/u;

/** Signs of numbers and verses, which have a shape. */
const shaped =
  /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{13440}]/u;
/** Old Hangul without a consonant or vowel has these in its place. */
const filler = /[\u115f\u1160]/u;

/** Letters of scripts in which a joiner changes the shape of a letter. */
const isJoined =
  /(?![\p{scx=Latin}\p{scx=Greek}\p{scx=Cyrillic}\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}])[\p{L}\p{M}]/u;
const isEmoji = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]/u;
const rightToLeft =
  /[\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}\p{sc=Adlam}\p{sc=Mandaic}\p{sc=Samaritan}\p{sc=Hanifi_Rohingya}]/u;

/** One pass: what a character may follow is what was kept before it. */
const withoutInvisible = (text: string): string => {
  const lines = text.replace(lineBreaks, '\n');
  if (!unseen.test(lines)) return lines;
  const isRightToLeft = rightToLeft.test(lines);
  const characters = Array.from(lines);
  const kept: string[] = [];
  let before = '';
  for (const [index, character] of characters.entries()) {
    const after = characters[index + 1] ?? '';
    if (unseen.test(character) && !isNeeded(character, before, after, isRightToLeft)) continue;
    kept.push(character);
    before = character;
  }
  return kept.join('');
};

const isNeeded = (
  character: string,
  before: string,
  after: string,
  isRightToLeft: boolean,
): boolean => {
  if (shaped.test(character)) return true;
  if (joiner.test(character)) {
    const joinsEmoji =
      character === '\u200d' && isEmoji.test(before) && /\p{Extended_Pictographic}/u.test(after);
    return joinsEmoji || isJoined.test(before);
  }
  if (mark.test(character)) return isRightToLeft && before !== '' && !unseen.test(before);
  if (emojiSelector.test(character)) return /\p{Emoji}/u.test(before);
  if (selector.test(character))
    return /[\p{sc=Han}\p{Sm}\p{sc=Myanmar}\p{sc=Phags_Pa}]/u.test(before);
  if (mongolianSelector.test(character))
    return /\p{sc=Mongolian}/u.test(before) && !unseen.test(before);
  return filler.test(character) && /(?![\u115f\u1160])[\u1100-\u11ff]/u.test(before + after);
};

// ---------------------------------------------------------------- tokens

/** The names that templates and parsers of tool calls read in `<name …>` and `</name>`, with or without a namespace. */
const tagNames = [
  ...['tool_call', 'tool_calls', 'toolcall', 'tool_response', 'tool_result', 'tool_results'],
  ...[
    'tool_code',
    'tool_use',
    'tool_outputs',
    'function_call',
    'function_calls',
    'function_results',
  ],
  ...['function_response', 'function', 'invoke', 'parameter', 'arg_key', 'arg_value', 'sys'],
  ...['start_of_turn', 'end_of_turn', 'start_of_image', 'end_of_image', 'end_of_utterance'],
  ...[
    'start_function_call',
    'end_function_call',
    'start_function_response',
    'end_function_response',
  ],
  ...['start_function_declaration', 'end_function_declaration', 'longcat_tool_call'],
  ...['begin_of_sentence', 'end_of_sentence', 'think', 'thinking', 'reasoning', '__final_answer__'],
];

/** Tags without attributes: prose and pages have longer ones that start like these. */
const wholeTags = String.raw`s|bos|eos|pad|unk|mask|tools|\w{1,40}\||(?:extra_id|special|unused)_?\d{1,4}`;

const squareNames = [
  ...['inst', 'sys', 'tool_calls', 'tool_results', 'tool_content', 'available_tools', 'args'],
  ...['system_prompt', 'model_settings', 'call_id', 'think'],
];

const bars = /[∣│┃❘ǀ]/gu;

/** Text as a lenient reader sees it: of one width and case, and without what is invisible. */
const folded = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(/[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu, '')
    .replace(bars, '|')
    .toLowerCase();

const tag = new RegExp(
  String.raw`^/?(?:\|[/\p{L}\p{N}_▁"]|(?:[\w-]{1,20}:)?(?:${tagNames.join('|')})(?=[\s=/|>])|(?:${wholeTags})(?=/?>))`,
  'u',
);
const square = new RegExp(`^/?(?:${squareNames.join('|')})(?=>)`, 'u');

/** The start of a token that the end cuts off: further text would complete it. */
const cutTag = /^\/?[\w:-]{0,40}\|?$/u;
const cutSquare = /^\/?[a-z_]{0,15}$/u;

/** The longest name, with an invisible character after each of its own. */
const maxName = 120;
const angles = new RegExp(`[<＜﹤◁]([^<>＜＞﹤﹥◁▷]{0,${maxName}})([>＞﹥▷]?)`, 'gu');
const squares = new RegExp(`[[［]([^[\\]［］]{0,${maxName}})([\\]］]?)`, 'gu');

const withoutTokens = (text: string): string =>
  opened(opened(text, angles, '‹', tag, cutTag), squares, '⟦', square, cutSquare);

const opened = (
  text: string,
  brackets: RegExp,
  bracket: string,
  token: RegExp,
  cut: RegExp,
): string =>
  text.replace(brackets, (whole: string, written: string, close: string, at: number) => {
    const name = folded(written);
    const isToken = token.test(close === '' ? name : `${name}>`);
    const isCut = close === '' && at + whole.length === text.length && cut.test(name);
    return isToken || isCut ? bracket + whole.slice(1) : whole;
  });

// ---------------------------------------------------------------- labels

/** The labels that prompts of Millrace put before text, and the names of roles. */
const promptLabels = [
  ...[
    'thought',
    'thoughts',
    'action',
    'action input',
    'action_input',
    'observation',
    'observations',
  ],
  ...['final answer', 'final_answer', 'answer', 'ai answer', 'scratchpad', 'result', 'results'],
  ...['user', 'assistant', 'system', 'developer', 'human', 'tool', 'tool result', 'ai', 'notes'],
  ...['memory', 'memories', 'goal', 'the task', 'the step in progress', 'you wrote'],
];

/** The headings of a transcript, such as `result of search:` and `assistant (Ann) uses search:`. */
const headings = String.raw`(?:result|error) of .{1,60}?|(?:user|assistant|memory)(?: \d{1,4})? ?\([^()]{0,60}\)|assistant (?:\([^()]{0,60}\) )?uses .{1,60}?`;

/** The sections that prompts of Millrace have. */
const sections = [
  ...['retrieved context', 'recalled memories', 'response format', 'team', 'context'],
  ...['why you are called', 'plan'],
];
const sectionMark = new RegExp(`^\\[(?:${sections.join('|')})\\]`, 'u');

const blank = String.raw`[\s\u2800]`;

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

const labelPattern = (labels: readonly string[]): RegExp =>
  new RegExp(
    String.raw`^(?:#{1,6}${blank}{0,4})?[*_${'`'}~]{0,3}${blank}{0,4}(?:(?:${labels.map(escaped).join('|')})(?:${blank}{1,4}\d{1,4})?|${headings})${blank}{0,8}[*_${'`'}~]{0,3}${blank}{0,8}:`,
    'u',
  );
const standard = labelPattern(promptLabels);

/** The start of a line that is looked at. */
const maxHead = 160;

const withQuotedLabels = (text: string, labels: readonly string[]): string => {
  const own = labels.length === 0 ? standard : labelPattern([...promptLabels, ...labels]);
  return text
    .split('\n')
    .map((line) => (startsWithLabel(line, own) ? `> ${line}` : line))
    .join('\n');
};

const startsWithLabel = (line: string, label: RegExp): boolean => {
  const start = line.search(/[^\s\u2800]/u);
  if (start < 0) return false;
  const head = folded(line.slice(start, start + maxHead));
  return label.test(head) || sectionMark.test(head);
};
