import { answer, refused, type Row, use } from './sample.test-support.js';

/** In texts for people. */
export const backslashes: readonly Row[] = [
  [
    'a formula',
    String.raw`{"answer": "It is \(\frac{a}{b} + \alpha\), so \[x \to \infty\]."}`,
    answer(String.raw`It is \(\frac{a}{b} + \alpha\), so \[x \to \infty\].`),
    'repair',
  ],
  [
    'a formula that is valid JSON by accident',
    String.raw`{"answer": "The angle \theta is \beta \times \tau, \rho \neq \nabla."}`,
    answer(String.raw`The angle \theta is \beta \times \tau, \rho \neq \nabla.`),
    'repair',
  ],
  [
    'a formula with doubled backslashes',
    String.raw`{"answer": "It is $\\theta \\times 2$."}`,
    answer(String.raw`It is $\theta \times 2$.`),
  ],
  [
    'short commands in a formula',
    String.raw`{"answer": "$a \ne b \to \nu$\nne tan to\n$$\nx = \tan y\n$$"}`,
    answer(String.raw`$a \ne b \to \nu$` + '\nne tan to\n$$\nx = ' + String.raw`\tan y` + '\n$$'),
    'repair',
  ],
  [
    'lines and tabs before words',
    String.raw`{"answer": "One\nnext\n\ttext\rtwo\n\nnot\tan end\n"}`,
    answer('One\nnext\n\ttext\rtwo\n\nnot\tan end'),
  ],
  [
    'a path',
    String.raw`{"answer": "Open C:\Users\Public\docs, or \\server\share."}`,
    answer(String.raw`Open C:\Users\Public\docs, or \server\share.`),
    'repair',
  ],
  [
    'a path of valid escapes',
    String.raw`{"answer": "Open C:\new\table\bin\x, then\nD:\\temp."}`,
    answer(String.raw`Open C:\new\table\bin\x, then` + '\nD:\\temp.'),
    'repair',
  ],
  [
    'a pattern',
    String.raw`{"answer": "Use \d+\.\d* or [^\s]."}`,
    answer(String.raw`Use \d+\.\d* or [^\s].`),
    'repair',
  ],
  ['an apostrophe', String.raw`{"answer": "It\'s \"fine\"."}`, answer('It\'s "fine".'), 'repair'],
  [
    'half an escape of a code',
    String.raw`{"answer": "\underline{x} and \u00e9"}`,
    answer(String.raw`\underline{x} and é`),
    'repair',
  ],
  [
    'a formula in an answer that is cut',
    String.raw`{"answer": "It is \alpha and \the`,
    answer(String.raw`It is \alpha and` + ' \the'),
    'repair',
  ],
  [
    'a formula in a thought',
    String.raw`{"scratchpad": "Is \alpha < \theta?", "answer": "Yes."}`,
    answer('Yes.'),
    'repair',
  ],
];

/** In arguments, where each character counts. */
export const backslashesInActions: readonly Row[] = [
  [
    'a pattern in arguments',
    String.raw`[{"name": "run", "arguments": {"code": "/\d+/"}}]`,
    refused,
  ],
  [
    'a pattern of valid escapes in arguments',
    String.raw`[{"name": "run", "arguments": {"code": "/\bcat\b/"}}]`,
    refused,
  ],
  [
    'a path of valid escapes in arguments',
    String.raw`[{"name": "run", "arguments": {"code": "C:\new\table"}}]`,
    refused,
  ],
  [
    'doubled backslashes in arguments',
    String.raw`[{"name": "run", "arguments": {"code": "/\\bcat/ C:\\new\nQ:\nA:\nb"}}]`,
    use('run', { code: String.raw`/\bcat/ C:\new` + '\nQ:\nA:\nb' }),
  ],
  [
    'an apostrophe in arguments',
    String.raw`[{"name": "run", "arguments": {"code": "print(\'a\')"}}]`,
    use('run', { code: "print('a')" }),
    'repair',
  ],
];
