import { describe, expect, it } from '@jest/globals';
import { ask, declare, fourTools, otherTools, user, used } from './declarations.test-data.js';
import { respond } from './respond.js';

const answerTo = (text: string, tools = fourTools): string => {
  const response = respond(ask(text, { tools }));
  return response.type === 'answer' ? response.text : JSON.stringify(response.calls);
};

const bothSets = [fourTools, otherTools];

describe('what is left, and why', () => {
  it.each([
    ["don't tell me the time in Tokyo", /^I leave .*as you ask/u],
    ['what is 2+2 but do not use the tools', /^I leave .*as you ask/u],
    ['please do not read README.md', /^I leave .*as you ask/u],
    ['delete README.md', /^No tool here can delete or change anything/u],
    ['Please could you rename LICENSE to foo.txt?', /^No tool here can delete or change/u],
    ['get rid of the file notes.txt', /^No tool here can delete or change/u],
    ['write hello into notes.txt', /^No tool here can delete or change/u],
    ['what time will it be in 3 hours', /^No tool here converts a given time/u],
    ["If it's 3pm in Berlin, what time is it in Tokyo?", /No tool here converts a given time/u],
    ['show the last 3 lines of README.md', /^No parameter of .* can say “last 3 lines”/u],
  ])('%s', (text, expected) => {
    for (const tools of bothSets) expect(answerTo(text, tools)).toMatch(expected);
  });

  it('does not turn a change into a read', () => {
    expect(answerTo('delete a.md and read b.md')).toBe(
      JSON.stringify([{ name: 'read_file', input: { path: 'b.md' } }]),
    );
  });

  it('lets tools change what they can', () => {
    const path = { path: { type: 'string', examples: ['a.md'] } };
    const tools = [
      declare('delete_file', 'Deletes a file.', path),
      declare('cat', 'Prints a file.', path),
    ];
    expect(answerTo('delete a.md', tools)).toContain('delete_file');
    expect(answerTo('erase a.md', tools)).toContain('delete_file');
    expect(answerTo('rename a.md', tools)).toMatch(/^No tool here can rename that/u);
  });

  it.each(['How do I stop an agent?', 'why not use tools?', 'how can I test without using tools?'])(
    'takes no question for an order: %s',
    (text) => {
      expect(answerTo(text)).toContain('search_docs');
    },
  );
});

it('says that no tool computes a difference', () => {
  const time = (timeZone: string, output: string) => ({
    name: 'clock',
    input: { timeZone },
    output,
  });
  const messages = [
    user("What's the time difference between London and Tokyo?"),
    ...used(time('Europe/London', '12:00'), time('Asia/Tokyo', '21:00')),
  ];
  expect(respond(ask(messages))).toMatchObject({
    text: 'Europe/London: 12:00. Asia/Tokyo: 21:00. The difference itself is computed by no tool here.',
  });
});
