/**
 * Reads the number that a list of lower-case words begins with: `two`, `hundred`, `and`, `five` give 205.
 *
 * A hyphen within a number (`twenty-one`) may be a word of its own.
 */
export const readNumberWords = (
  words: readonly string[],
): { readonly text: string; readonly length: number } | undefined => {
  let total = 0;
  let group = 0;
  let length = 0;
  let last: Part['type'] | undefined;
  for (let at = 0; at < words.length; at += 1) {
    const part = partOf(words[at] ?? '');
    if (part === undefined) {
      if (length > 0 && isJoint(words[at] ?? '', last, partOf(words[at + 1] ?? ''))) continue;
      break;
    }
    if (!mayFollow(part, last, group)) break;
    if (part.type === 'thousand') {
      total += Math.max(group, 1) * part.value;
      group = 0;
    } else group = part.type === 'hundred' ? Math.max(group, 1) * 100 : group + part.value;
    last = part.type;
    length = at + 1;
  }
  return length === 0 ? undefined : withDecimals(words, length, total + group);
};

interface Part {
  readonly type: 'one' | 'teen' | 'ten' | 'hundred' | 'thousand';
  readonly value: number;
}

const ones = 'zero one two three four five six seven eight nine'.split(' ');
const teens =
  'ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(' ');
const tens = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');

const parts = new Map<string, Part>([
  ...ones.map((word, value): [string, Part] => [word, { type: 'one', value }]),
  ...teens.map((word, index): [string, Part] => [word, { type: 'teen', value: 10 + index }]),
  ...tens.map((word, index): [string, Part] => [word, { type: 'ten', value: 20 + 10 * index }]),
  ['hundred', { type: 'hundred', value: 100 }],
  ['thousand', { type: 'thousand', value: 1_000 }],
  ['million', { type: 'thousand', value: 1_000_000 }],
  ['billion', { type: 'thousand', value: 1_000_000_000 }],
]);

const partOf = (word: string): Part | undefined => parts.get(word);

const isJoint = (word: string, last: Part['type'] | undefined, next: Part | undefined): boolean => {
  if (word === '-') return last === 'ten' && next?.type === 'one';
  const isBig = last === 'hundred' || last === 'thousand';
  return (
    word === 'and' && isBig && next !== undefined && !['hundred', 'thousand'].includes(next.type)
  );
};

const mayFollow = ({ type }: Part, last: Part['type'] | undefined, group: number): boolean => {
  switch (last) {
    case undefined:
    case 'hundred':
    case 'thousand':
      return type !== 'hundred' || last !== 'hundred';
    case 'ten':
      return type === 'one' || type === 'hundred' || type === 'thousand';
    case 'one':
    case 'teen':
      return (type === 'hundred' && group < 20) || type === 'thousand';
  }
};

const withDecimals = (words: readonly string[], length: number, whole: number) => {
  if (words[length] !== 'point') return { text: String(whole), length };
  const digits = words.slice(length + 1).map((word) => ones.indexOf(word));
  const end = digits.findIndex((digit) => digit < 0);
  const decimals = digits.slice(0, end < 0 ? digits.length : end);
  if (decimals.length === 0) return { text: String(whole), length };
  return { text: `${whole}.${decimals.join('')}`, length: length + 1 + decimals.length };
};
