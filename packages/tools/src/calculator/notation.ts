/**
 * Converts an expression to mathjs' notation: `17.5% of 2,349` becomes `(17.5 percent) * 2349`, and `20 °C in °F`
 * becomes `20 degC to degF`. Unknown parts stay the same.
 */
export const toNotation = (expression: string): string =>
  rewritings
    .reduce(
      (text, [pattern, replacement]) => text.replace(pattern, replacement),
      withoutFractionSigns(
        withoutSeparators(withoutCurrencySign(expression.normalize('NFC').trim())),
      ),
    )
    .trim();

/** A percent sign, unless a possible divisor follows: then it is the remainder operator. */
const percentSign = /\s*(?:%|percent\b)(?!\s*[\w.(])/.source;

const rewritings: readonly (readonly [RegExp, string])[] = [
  [/^(?:please\s+)?(?:what(?:'s| is)|how much is|calculate|compute|evaluate|convert)\s+/iu, ''],
  [/[\s=?]+$/u, ''],
  [/[−–—]/gu, '-'],
  [/[×✕·⋅∙]|\b(?:times|multiplied by|of)\b(?<!root of)/giu, '*'],
  [/\*\*/gu, '^'],
  [/[÷∕]|\b(?:divided by|per)\b/giu, '/'],
  [/\bplus\b/giu, '+'],
  [/\bminus\b/giu, '-'],
  [/²|\bsquared\b/giu, '^2'],
  [/³|\bcubed\b/giu, '^3'],
  [/π/gu, 'pi'],
  [/\b(?:the )?square root of\b/giu, '√'],
  [/√\s*(?=\()/gu, 'sqrt'],
  [/√\s*([\d.]+)/gu, 'sqrt($1)'],
  [/\b(?:square|sq)\.? (\p{L}+)/giu, '$1^2'],
  [/\bcubic (\p{L}+)/giu, '$1^3'],
  [/(?<=\d)(?<!\b0)\s*x\s*(?=[\d.])/gu, ' * '],
  [new RegExp(String.raw`(?<![\w.])(\d[\d.]*(?:e[+-]?\d+)?)${percentSign}`, 'giu'), '($1 percent)'],
  [new RegExp(String.raw`\)${percentSign}`, 'giu'), ') percent'],
  [/°\s*([CF])\b/gu, ' deg$1'],
  [/°/gu, ' deg '],
  [/\b(?:into|as)\b/giu, 'to'],
  [/(?<=\d\s*)in(?=\s*(?:$|[-+*/)]|(?:to|in)\b))/giu, ' inch '],
  [/(?<!\p{L})([CF])(?=\s+(?:to|in)\s+[CFK]$)/gu, 'deg$1'],
  [/(?<=\b(?:degC|degF|K)\s+(?:to|in)\s+)([CF])$/gu, 'deg$1'],
];

/** `2½` is `(2+1/2)`. */
const withoutFractionSigns = (text: string): string =>
  text.replace(
    /(?<![\w.,])(\d+)?\s*([\u00bc-\u00be])/gu,
    (_, whole: string | undefined, sign: string) => {
      const fraction = sign.normalize('NFKC').replace('\u2044', '/');
      return whole === undefined ? `(${fraction})` : `(${whole}+${fraction})`;
    },
  );

/** Finds a number in the result of `toNotation` whose comma may be a decimal point. */
export const ambiguousComma = (notation: string): string | undefined =>
  [...notation.matchAll(/(?<![\w.,])\d[\d.]*,\d[\d.,]*/gu)].find(
    ({ index }) => !isArgument(notation, index),
  )?.[0];

/** Removes thousands separators, but not commas between the arguments of a function. */
const withoutSeparators = (text: string): string =>
  text
    .replace(/(?<=\d)_(?=\d)/gu, '')
    .replace(/(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])/gu, (number, at: number) =>
      isArgument(text, at) ? number : number.replaceAll(',', ''),
    );

const isArgument = (text: string, at: number): boolean => {
  const calls: boolean[] = [];
  for (const { 0: bracket, index } of text.slice(0, at).matchAll(/[()]/gu)) {
    if (bracket === '(') calls.push(/\w\s*$/u.test(text.slice(0, index)));
    else calls.pop();
  }
  return calls.includes(true);
};

/** Removes currency signs if all are the same: amounts in different currencies must not be added. */
const withoutCurrencySign = (text: string): string => {
  const signs = new Set(text.match(/\p{Sc}/gu));
  return signs.size === 1 ? text.replace(/\p{Sc}\s*(?=[\d.])|(?<=\d)\s*\p{Sc}/gu, '') : text;
};
