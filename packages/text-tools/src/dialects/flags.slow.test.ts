import { describe, expect, it } from '@jest/globals';
import { dialects, replied, textIn } from './reading.test-support.js';

type Outcome = 'runs' | 'asks' | { readonly says: string };

const runs = 'runs';
const asks = 'asks';
const says = (text: string): Outcome => ({ says: text });
const tool = '"tool": "search", "arguments": {"q": "cats"}';

/** What models put into the keys of the protocol, beside a tool, beside none, and alone. */
const table: readonly (readonly [string, Outcome])[] = [
  ...[
    'true',
    'false',
    '"true"',
    '"False"',
    '"None"',
    '"null"',
    'null',
    '1',
    '0',
    '"1"',
    '"no"',
    '""',
    '{}',
    '[]',
  ].flatMap((flag): readonly (readonly [string, Outcome])[] => [
    [`{${tool}, "final_answer": ${flag}}`, runs],
    [`{"final_answer": ${flag}, ${tool}}`, runs],
    [`{"scratchpad": "s", "answer": ${flag}, ${tool}}`, runs],
  ]),
  ...['null', '"none"', '"None"', '"null"', '""', '"N/A"', 'false', '0', '{}', '"no tool"'].flatMap(
    (none): readonly (readonly [string, Outcome])[] => [
      [`{"tool": ${none}}`, asks],
      [`{"tool": ${none}, "arguments": {}}`, asks],
      [`{"tool": ${none}, "arguments": "None", "final_answer": false}`, asks],
      [`{"tool": ${none}, "final_answer": "true"}`, asks],
      [`{"tool": ${none}, "final_answer": "None"}`, asks],
      [`{"tool": ${none}, "final_answer": null}`, asks],
      [`{"tool": ${none}, "final_answer": 1}`, asks],
      [`{"tool": ${none}, "final_answer": 0}`, asks],
      [`{"tool": ${none}, "final_answer": true, "answer": "It is 4."}`, says('It is 4.')],
      [`{"tool": ${none}, "final_answer": "It is 4."}`, says('It is 4.')],
      [`{"tool": ${none}, "arguments": null, "answer": "It is 4."}`, says('It is 4.')],
      [`{"tool": ${none}, "arguments": [], "final_answer": "No."}`, says('No.')],
      [`{"tool": ${none}, "answer": "no"}`, says('no')],
      [`{"tool": ${none}, "final_answer": 42}`, says('42')],
      [`{"tool": ${none}, "final_answer": "0"}`, says('0')],
    ],
  ),
  ['{"final_answer": true}', asks],
  ['{"final_answer": false}', asks],
  ['{"final_answer": null}', asks],
  ['{"final_answer": {}}', asks],
  ['{"final_answer": []}', asks],
  ['{"answer": false}', says('false')],
  ['{"final_answer": "false"}', says('false')],
  ['{"final_answer": "None"}', says('None')],
  ['{"final_answer": "Nonesuch is a word."}', says('Nonesuch is a word.')],
  ['{"final_answer": 0}', says('0')],
  ['{"final_answer": -1.5}', says('-1.5')],
  ['{"final_answer": {"text": "It is 4."}}', says('It is 4.')],
  ['{"final_answer": {"answer": "It is 4."}}', says('It is 4.')],
  ['{"final_answer": {"final_answer": {"content": "It is 4."}}}', says('It is 4.')],
  ['{"final_answer": {"type": "text", "text": "It is 4."}}', says('It is 4.')],
  [
    '{"final_answer": [{"type": "text", "text": "It is"}, {"type": "text", "text": "4."}]}',
    says('It is\n4.'),
  ],
  ['{"final_answer": ["a", "b"]}', says('a\nb')],
  ['{"final_answer": [1, 2]}', says('[1,2]')],
  ['{"final_answer": {"sum": 4, "unit": "m"}}', says('{"sum":4,"unit":"m"}')],
  ['{"final_answer": {"result": 4}}', says('4')],
];

const outcome = async (name: 'action' | 'flat', pieces: readonly string[]): Promise<Outcome> => {
  const { chunks } = await replied(dialects[name], pieces);
  const said = textIn(chunks, 'text');
  if (chunks.some(({ type }) => type === 'toolCall')) return said === '' ? runs : says(said);
  // What is asked again must not have been shown.
  if (chunks.some(({ type }) => type === 'malformed')) return said === '' ? asks : says(said);
  return says(said);
};

describe.each(['action', 'flat'] as const)('P12: flags in the dialect %s', (name) => {
  it.each(table)('P12: %s', async (json, expected) => {
    const reply = name === 'action' ? `Action: ${json}` : json;
    expect(await outcome(name, [reply])).toEqual(expected);
    expect(await outcome(name, reply.split(''))).toEqual(expected);
  });
});
