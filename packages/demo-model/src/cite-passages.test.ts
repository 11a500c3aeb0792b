import { describe, expect, it } from '@jest/globals';
import { citePassages } from './cite-passages.js';

const hit = (path: string, text: string): string => `${path}\n${text}`;

describe('citePassages', () => {
  it('does not quote the search itself, where it says that it found nothing', () => {
    const result = "Nothing in the 11 files searched matches 'pay'. Try other words.";
    expect(citePassages('what do I pay', result)).toBe(
      'The documents do not seem to answer “what do I pay”.',
    );
  });

  it('quotes the best statements, plainly', () => {
    const text = `- Something else. ${'Filler is long. '.repeat(30)}\n- **Demand** is a level gate.`;
    expect(citePassages('what is a gate?', hit('a.md', text))).toBe(
      '“… Demand is a level gate.” (a.md)',
    );
  });

  it('quotes two at most, prose before code', () => {
    const code = hit('code.md', 'const gate = () => ({ gate: {} });');
    const prose = hit('prose.md', 'A gate opens.');
    const more = hit('more.md', 'A gate closes.');
    const answer = citePassages('the gate', [code, prose, more].join('\n\n'));
    expect(answer).toBe('“A gate opens.” (prose.md)\n\n“A gate closes.” (more.md)');
  });

  it('cuts long quotes', () => {
    const answer = citePassages('gate', hit('a.md', `A gate ${'is very long '.repeat(100)}`));
    expect(answer.length).toBeLessThan(450);
    expect(answer).toContain(' …”');
  });

  it('counts the heading, and trusts what the search says of relevance', () => {
    const stopping = hit('guide.md › Guide › Stopping (relevance 88 %)', 'Politely, or at once.');
    expect(citePassages('How do I stop an agent while it is running?', stopping)).toBe(
      '“Politely, or at once.” (guide.md › Guide › Stopping)',
    );
    const scored = JSON.stringify([{ path: 'a.md', score: 0.9, text: 'Politely, or at once.' }]);
    expect(citePassages('how do I halt it?', scored)).toBe('“Politely, or at once.” (a.md)');
  });

  it('prefers the passage whose heading names what is to be defined', () => {
    const found = [hit('a.md › Gates', 'It opens.'), hit('b.md › Other', 'A gate, a gate.')];
    for (const list of [found, found.toReversed()])
      expect(citePassages('what is a gate?', list.join('\n\n'))).toMatch(/^“It opens\.”/u);
  });

  it('quotes a doubtful passage as such', () => {
    const found = hit('a.md', 'With Node 20.19 or newer.');
    expect(citePassages('which node version do i need', `Nothing fits well.\n\n${found}`)).toBe(
      'The nearest passage, which may not answer it: “With Node 20.19 or newer.” (a.md)',
    );
  });

  it('is honest where too little fits, or the search says so', () => {
    expect(citePassages('who won the cup', hit('a.md', 'The cup is red.'))).toBe(
      'The documents do not seem to answer “who won the cup”. The nearest passage is in a.md.',
    );
    expect(citePassages('the gate', `No good match.\n\n${hit('a.md', 'A gate.')}`)).toBe(
      'The nearest passage, which may not answer it: “A gate.” (a.md)',
    );
    expect(citePassages('the gate', '')).toBe('The documents do not seem to answer “the gate”.');
  });
});
