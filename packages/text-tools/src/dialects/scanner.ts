import type { Cursor } from '../cursor.js';

export type Undecided = 'more';

export type Label = 'thought' | 'action' | 'input' | 'observation' | 'answer';

export interface Mark<Type extends string = string> {
  readonly type: Type;
  readonly length: number;
  readonly name?: string;
}

export const maxPeek = 80;

/** Characters without a width, such as a byte order mark, and space. */
export const invisibleStart = /^[\s\u200B\u200E\u200F\u2060\uFEFF]+/;

export type LabelWords = readonly (readonly [word: string, label: Label])[];

const english: LabelWords = [
  ['thoughts', 'thought'],
  ['thought', 'thought'],
  ['action input', 'input'],
  ['action_input', 'input'],
  ['action', 'action'],
  ['observation', 'observation'],
  ['final answer', 'answer'],
  ['final_answer', 'answer'],
];

const englishAfterThought: LabelWords = [
  ['answer', 'answer'],
  ['ai answer', 'answer'],
];

export const labelWords = (
  labels: readonly Label[],
  others: Readonly<Partial<Record<Label, readonly string[]>>> = {},
): LabelWords => [
  ...labels.flatMap((label) =>
    (others[label] ?? []).map((word) => [word.toLowerCase(), label] as const),
  ),
  ...english.filter(([, label]) => labels.includes(label)),
];

export const labelAt = (
  text: string,
  words: LabelWords,
  isEnd: boolean,
  followsThought = false,
): Mark<Label> | Undecided | undefined => {
  const head = text.slice(0, maxPeek);
  const [lead = '', mark = ''] =
    /^[\u200B\u2060\uFEFF]*(?:#{1,6}[ \t]*)?([*_]{0,3})/.exec(head) ?? [];
  const rest = head.slice(lead.length);
  const mayGrow = !isEnd && text.length < maxPeek;
  if (rest === '') return mayGrow && head !== '' ? 'more' : undefined;
  const lower = rest.toLowerCase();
  let isOpen = false;
  const all = followsThought ? [...words, ...englishAfterThought] : words;
  for (const [word, type] of all) {
    if (word.startsWith(lower)) isOpen = true;
    if (!lower.startsWith(word)) continue;
    const after = rest.slice(word.length);
    const [colon, closing] =
      /^(?:[ \t]{1,4}\d{1,3})?[ \t\u00a0\u202f\u200b\u2060]*([*_]{0,3})[ \t\u00a0\u202f\u200b\u2060]*[:：]/.exec(
        after,
      ) ??
      (followsThought && type === 'answer' ? /^[ \t]+()[-–—](?=[ \t])/.exec(after) : null) ??
      [];
    if (colon === undefined) {
      if (
        /^(?:[ \t]{1,4}\d{1,3})?[ \t\u00a0\u202f\u200b\u2060]*[*_]{0,3}[ \t\u00a0\u202f\u200b\u2060]*[-–—]?$/.test(
          after,
        )
      )
        isOpen = true;
      continue;
    }
    const length = lead.length + word.length + colon.length;
    if (mark === '' || closing !== '') return { type, length };
    const closingMarks = text.slice(length, length + mark.length);
    if (closingMarks === mark) return { type, length: length + mark.length };
    return mark.startsWith(closingMarks) && mayGrow ? 'more' : { type, length };
  }
  return isOpen && mayGrow ? 'more' : undefined;
};

/** The length of the label of an answer that a model writes after the mark of one, with the space before it; 0 for none. */
export const repeatedLabel = (
  text: string,
  words: LabelWords,
  isEnd: boolean,
): number | Undecided => {
  const rest = text.trimStart();
  if (rest === '') return isEnd || text.length === maxPeek ? 0 : 'more';
  const label = labelAt(rest, words, isEnd, true);
  if (label === undefined || label === 'more') return label ?? 0;
  return label.type === 'answer' ? text.length - rest.length + label.length : 0;
};

export const inputLabelAt = (text: string, isEnd: boolean): number | Undecided | undefined => {
  const head = text.slice(0, maxPeek);
  const [lead] =
    /^[#*_ \t]{0,8}(?:(?:action|tool)[ _])?(?:inputs?|arguments?|args|parameters?|params)[ \t]{0,8}[*_]{0,3}[ \t]{0,8}(?:[:：=]|[-–—](?=[ \t{]))[*_]{0,3}/i.exec(
      head,
    ) ?? [];
  const mayGrow = !isEnd && text.length < maxPeek;
  if (lead !== undefined) return lead.length === head.length && mayGrow ? 'more' : lead.length;
  return mayGrow &&
    /^[#*_ \t]{0,8}[a-z]{0,10}(?:[ _][a-z]{0,10})?[ \t]{0,8}[*_]{0,3}[ \t]{0,8}[-–—]?$/i.test(head)
    ? 'more'
    : undefined;
};

export const jsonAt = (text: string, isEnd: boolean): 'json' | Undecided | undefined => {
  const head = text.slice(0, maxPeek);
  const mayGrow = !isEnd && text.length < maxPeek;
  const [lead = '', brace, quote = '', written = ''] =
    /^(?:\[\s*)?(\{)?\s*(["'“‘]?)(\w*(?:[ -]\w*)?)/.exec(head) ?? [];
  const word = plainKey(written);
  const rest = head.slice(lead.length);
  if (brace === undefined) {
    return rest === '' && /^\[\s*$/.test(lead) && mayGrow ? 'more' : undefined;
  }
  if (rest === '') return mayGrow && beginsKnownKey(word) ? 'more' : undefined;
  if (!isKnownKey(word)) return undefined;
  const isQuoted = quote !== '';
  if ((isQuoted ? /^["'”’]\s*:/ : /^\s*:/).test(rest)) return 'json';
  const mayBe = (isQuoted ? /^["'”’]\s*$/ : /^\s*$/).test(rest);
  return mayBe && mayGrow ? 'more' : undefined;
};

export type Tag =
  'think' | 'unthink' | 'answer' | 'unanswer' | 'call' | 'close' | 'action' | 'function';

const tags: readonly (readonly [string, Tag])[] = [
  ['<think>', 'think'],
  ['<thinking>', 'think'],
  ['</think>', 'unthink'],
  ['</thinking>', 'unthink'],
  ['[THINK]', 'think'],
  ['[/THINK]', 'unthink'],
  ['<__final_answer__>', 'answer'],
  ['</__final_answer__>', 'unanswer'],
  ['<tool_call>', 'call'],
  ['<TOOLCALL>', 'call'],
  ['</TOOLCALL>', 'close'],
  ['</tool_call>', 'close'],
  ['</function>', 'close'],
  ['<|python_tag|>', 'action'],
  ['<|tool_call|>', 'action'],
  ['<|/tool_call|>', 'close'],
  ['[TOOL_CALLS]', 'action'],
];

/** In any case: models vary the case of thought tags. */
const begins = (text: string, lead: string): boolean =>
  text.slice(0, lead.length).toLowerCase() === lead.toLowerCase();

export const tagAt = (text: string, isEnd: boolean): Mark<Tag> | Undecided | undefined => {
  const first = text.charAt(0);
  if (first !== '<' && first !== '[') return undefined;
  const head = text.slice(0, 2 * maxPeek);
  for (const [tag, type] of tags) if (begins(head, tag)) return { type, length: tag.length };
  const [whole, name] = /^<function=([^<>\n]{1,100})>/.exec(head) ?? [];
  if (whole !== undefined && name !== undefined) {
    return { type: 'function', length: whole.length, name: name.trim().replaceAll(/^"|"$/g, '') };
  }
  if (isEnd) return undefined;
  const mayBe =
    tags.some(([tag]) => begins(tag, head)) ||
    '<function='.startsWith(head) ||
    /^<function=[^<>\n]{0,100}$/.test(head);
  return mayBe ? 'more' : undefined;
};

export interface FenceLine {
  readonly length: number;
  readonly marks: string;
  readonly isBare: boolean;
}

export const fenceAt = (text: string, isEnd: boolean): FenceLine | Undecided | undefined => {
  const first = text.charAt(0);
  if (first !== '`' && first !== '~') return undefined;
  const head = text.slice(0, maxPeek);
  const mayGrow = !isEnd && text.length < maxPeek;
  const [lead, some] = /^(`{3,}|~{3,})[ \t]*\w*[ \t]*(?=[{[])/.exec(head) ?? [];
  if (lead !== undefined && some !== undefined) {
    return { length: lead.length, marks: some, isBare: false };
  }
  const [line, marks, info] = /^(`{3,}|~{3,})([^`\n]*)\n/.exec(head) ?? [];
  if (line !== undefined && marks !== undefined) {
    return { length: line.length, marks, isBare: info?.trim() === '' };
  }
  const open = /^(`{3,}|~{3,})[^`\n]*$/.exec(head);
  if (open === null) return mayGrow && /^(?:``?|~~?)$/.test(head) ? 'more' : undefined;
  if (mayGrow) return 'more';
  return isEnd && text.length < maxPeek
    ? { length: head.length, marks: open[1] ?? '', isBare: head.trim() === open[1] }
    : undefined;
};

export const keys = {
  name: ['tool', 'tool_name', 'name', 'action', 'function'],
  input: [
    'inputs',
    'input',
    'arguments',
    'args',
    'parameters',
    'params',
    'action_input',
    'tool_input',
  ],
  answer: ['final_answer', 'answer'],
  thought: ['thought', 'thoughts', 'scratchpad', 'reasoning'],
  /** Around calls, as in messages of an API. */
  around: ['tool_calls', 'tool_call', 'function_call'],
  other: ['type', 'id'],
} as const;

const allKeys: readonly string[] = Object.values(keys).flat();

/** Common words, which count only as they are. */
const exactKeys: readonly string[] = ['name', 'function', 'type', 'id'];

/** A key of the protocol in the spelling of another model, such as `Final Answer` and `actionInput`; any other key as it is. */
export const plainKey = (key: string): string => {
  if (isKnownKey(key) || key.length > 20) return key;
  const plain = key
    .trim()
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll(/[ -]/g, '_')
    .toLowerCase();
  return isKnownKey(plain) && !exactKeys.includes(plain) ? plain : key;
};

export const isKnownKey = (key: string): boolean => allKeys.includes(key);

const beginsKnownKey = (word: string): boolean => {
  const plain = word.replaceAll(/([a-z])([A-Z])/g, '$1_$2').replaceAll(/[ -]/g, '_');
  return allKeys.some((key) => key.startsWith(plain.toLowerCase()));
};

export const isOneOf = (list: readonly string[], key: string): boolean =>
  list.includes(plainKey(key));

export interface Lookahead {
  readonly label?: Mark<Label> | undefined;
  readonly tag?: Mark<Tag> | undefined;
  readonly fence?: FenceLine | undefined;
}

export const lookAhead = (cursor: Cursor, words: LabelWords, offset = 0): Lookahead | Undecided => {
  const { isEnd } = cursor;
  const text = cursor.peek(2 * maxPeek, offset);
  const label = labelAt(text, words, isEnd);
  const tag = tagAt(text, isEnd);
  const fence = fenceAt(text.slice(0, maxPeek), isEnd);
  return label === 'more' || tag === 'more' || fence === 'more' ? 'more' : { label, tag, fence };
};

export const afterSpace =
  (cursor: Cursor, atEnd: () => true, look: (text: string) => boolean): (() => boolean) =>
  () => {
    const text = cursor.peek(maxPeek);
    const [space = ''] = invisibleStart.exec(text) ?? [];
    if (space !== '') {
      cursor.take(space.length);
      return true;
    }
    return text === '' ? cursor.isEnd && atEnd() : look(text);
  };

export const hasMark = ({ label, tag, fence }: Lookahead): boolean =>
  label !== undefined || tag !== undefined || fence !== undefined;
