/** What a word or sign of a text means in arithmetic. */
export type PieceType =
  | 'number'
  | 'fraction'
  | 'dozen'
  | 'constant'
  | 'operator'
  | 'compare'
  | 'suffix'
  | 'percent'
  | 'open'
  | 'close'
  | 'comma'
  | 'function'
  | 'gather'
  | 'verb'
  | 'reference'
  | 'unit'
  | 'howMany'
  | 'percentOf'
  | 'percentageOf'
  | 'word'
  | 'other';

/** Names that are functions where a bracket follows. */
export const functions = new Set(
  `sqrt cbrt abs sin cos tan asin acos atan atan2 sinh cosh tanh log ln log2 log10 exp pow round floor
  ceil min max mean median sum prod mod gcd lcm factorial sign hypot nthRoot`.split(/\s+/u),
);

/** What the signs of arithmetic mean. */
export const signs = new Map<string, readonly [PieceType, string]>([
  ['+', ['operator', '+']],
  ['-', ['operator', '-']],
  ['−', ['operator', '-']],
  ['–', ['operator', '-']],
  ['*', ['operator', '*']],
  ['×', ['operator', '*']],
  ['·', ['operator', '*']],
  ['/', ['operator', '/']],
  ['÷', ['operator', '/']],
  ['^', ['operator', '^']],
  ['**', ['operator', '^']],
  ['!', ['suffix', '!']],
  ['²', ['suffix', '^2']],
  ['³', ['suffix', '^3']],
  ['%', ['percent', '%']],
  ['(', ['open', '(']],
  [')', ['close', ')']],
  [',', ['comma', ',']],
  ['<', ['compare', '<']],
  ['>', ['compare', '>']],
  ['<=', ['compare', '<=']],
  ['>=', ['compare', '>=']],
  ['=', ['compare', '==']],
  ['==', ['compare', '==']],
  ['√', ['function', 'sqrt']],
]);

const phraseTable: readonly (readonly [PieceType, string, string])[] = [
  ['operator', '+', 'plus|added to'],
  ['operator', '-', 'minus'],
  ['operator', '*', 'times|multiplied by|multiplied with'],
  ['operator', '/', 'divided by|over'],
  ['operator', '^', 'to the power of|raised to the power of|to the power|raised to|power'],
  ['operator', 'mod', 'mod|modulo|modulus'],
  ['percent', '%', 'percent|per cent|percents|pct'],
  ['suffix', '^2', 'squared'],
  ['suffix', '^3', 'cubed'],
  ['suffix', '!', 'factorial'],
  ['compare', '>', 'more than|greater than|bigger than|larger than|higher than|above'],
  ['compare', '<', 'less than|smaller than|fewer than|lower than|below'],
  ['compare', '>=', 'at least'],
  ['compare', '<=', 'at most'],
  ['compare', '==', 'equal to|equals|equal|the same as'],
  ['function', 'sqrt', 'square root of|square root|sqrt|root of'],
  ['function', 'cbrt', 'cube root of|cube root|cubic root of|cbrt'],
  ['function', 'abs', 'absolute value of|abs'],
  ['function', 'sin', 'sine of|sin of|sin|sine'],
  ['function', 'cos', 'cosine of|cos of|cos|cosine'],
  ['function', 'tan', 'tangent of|tan of|tan|tangent'],
  ['function', 'log', 'natural logarithm of|natural log of|log|ln'],
  ['function', 'log10', 'logarithm of|log of|log base ten of'],
  ['function', 'exp', 'exp'],
  ['function', 'round', 'round'],
  ['function', 'floor', 'floor'],
  ['function', 'ceil', 'ceil'],
  ['function', 'factorial', 'factorial of'],
  ['function', 'remainder', 'remainder of|remainder when'],
  ['function', 'twice', 'twice|double of'],
  ['gather', '+', 'sum of|total of|sum'],
  ['gather', '*', 'product of'],
  ['gather', '-', 'difference between|difference of'],
  ['gather', '/', 'ratio of|quotient of|ratio between'],
  ['gather', 'mean', 'average of|mean of|average|mean'],
  ['gather', 'max', 'maximum of|max of|largest of|biggest of|max'],
  ['gather', 'min', 'minimum of|min of|smallest of'],
  ['gather', 'gcd', 'greatest common divisor of|gcd of|gcd'],
  ['gather', 'lcm', 'least common multiple of|lcm of|lcm'],
  ['verb', '/', 'divide|split'],
  ['verb', '*', 'multiply'],
  ['verb', '+', 'add|sum up'],
  ['verb', '-', 'subtract|take away|take|deduct'],
  ['verb', 'increase', 'increase|raise'],
  ['verb', 'decrease', 'decrease|reduce|discount|lower'],
  ['verb', 'double', 'double'],
  ['verb', 'triple', 'triple'],
  ['verb', 'halve', 'halve'],
  ['verb', 'square', 'square'],
  ['verb', 'cube', 'cube'],
  ['fraction', '0.5', 'half of|half|one half of|one half|a half of'],
  ['fraction', '1 / 3', 'a third of|one third of|third of|a third|one third'],
  ['fraction', '2 / 3', 'two thirds of|two thirds'],
  ['fraction', '0.25', 'a quarter of|one quarter of|quarter of|a quarter|one quarter|a fourth of'],
  ['fraction', '0.75', 'three quarters of|three quarters|three fourths of'],
  ['fraction', '0.2', 'a fifth of|one fifth of|fifth of'],
  ['fraction', '0.1', 'a tenth of|one tenth of|tenth of'],
  ['dozen', '12', 'dozen|a dozen|dozens'],
  ['constant', 'pi', 'pi|π'],
  ['reference', '', 'it|that|this|the result|the answer|the outcome|that result|that number'],
  ['reference', '', 'this number|this result|the previous result|the last result'],
  ['howMany', '', 'how many|how much'],
  ['percentageOf', '', 'as a percentage of|as percentage of|as a percent of'],
  ['percentOf', '', 'what percent of|what percentage of|what per cent of'],
  ['unit', 'degC', 'degrees celsius|degree celsius|degrees centigrade|degrees c'],
  ['unit', 'degF', 'degrees fahrenheit|degree fahrenheit|degrees f'],
  ['unit', 'meters^2', 'square meters|square metres|square meter|square metre'],
  ['unit', 'km^2', 'square kilometers|square kilometres|square km'],
  ['unit', 'feet^2', 'square feet|square foot'],
  ['unit', 'miles^2', 'square miles|square mile'],
  ['unit', 'meters^3', 'cubic meters|cubic metres|cubic meter|cubic metre'],
  ['unit', 'feet^3', 'cubic feet|cubic foot'],
];

/** What words of arithmetic mean, alone or in a row. */
export const phrases: ReadonlyMap<string, readonly [PieceType, string]> = new Map(
  phraseTable.flatMap(([type, text, forms]) =>
    forms.split('|').map((form): [string, readonly [PieceType, string]] => [form, [type, text]]),
  ),
);

/** Words in the longest phrase. */
export const longestPhrase = 6;
