import { describe, expect, it } from '@jest/globals';
import { from } from 'rxjs';
import { createAgent, type ModelRequest } from '../../index.js';
import { finish, scriptedModel, text } from '../../testing/index.js';
import { user } from './conversation.test-support.js';
import { countRequest, createTokenCounter, type TokenCounter } from '../../models/count-request.js';
import { fitContext } from './fit-context.js';
import { samples } from './samples.test-data.js';
import { errorOf, tokenErrors, tokenErrorTable, tokenizers } from './token-errors.test-support.js';
import { sessions } from '../sessions/index.js';

const errors = tokenErrors();

describe('the default counter beside an exact tokenizer', () => {
  it('C3: knows texts of at least 1 kB of each kind', () => {
    for (const sample of Object.values(samples)) {
      expect(Buffer.byteLength(sample)).toBeGreaterThanOrEqual(1_000);
    }
  });

  it.each(errors)('C3: $name, $tokenizer: within 35 %, and less when it has learned', (it) => {
    expect(Math.abs(it.before)).toBeLessThan(0.35);
    expect(Math.abs(it.after)).toBeLessThan(0.15);
  });

  it('C3: counts nothing much too low if the estimate does', () => {
    const worst = (field: 'plain' | 'before' | 'after') =>
      Math.min(...errors.map((it) => it[field]));
    expect(worst('plain')).toBeLessThan(-0.5);
    expect(worst('before')).toBeGreaterThan(-0.35);
    expect(worst('after')).toBeGreaterThan(-0.15);
  });

  it('C3: has a table of it', () => {
    const lines = tokenErrorTable().split('\n');
    expect(lines).toHaveLength(10);
    expect(lines[2]).toMatch(/^\| english \| \+\d+ % \|/);
  });
});

/** A growing conversation that goes through all kinds of texts. */
const mixed = (length: number): readonly string[] => {
  const kinds = Object.values(samples);
  return Array.from({ length }, (_, index) => kinds[(index * 5) % kinds.length] ?? '');
};

describe.each(Object.entries(tokenizers))('a mixed conversation, by %s', (_name, count) => {
  const exact: TokenCounter = { count: (it) => count(it) };

  it('C3: is counted within 15 % after three requests', async () => {
    const counter = createTokenCounter();
    const offs: number[] = [];
    const answer = (request: ModelRequest) => {
      const actual = countRequest(exact, request);
      offs.push(errorOf(countRequest(counter, request, 'scripted'), actual));
      const usage = { inputTokens: actual, outputTokens: 10 };
      return from([{ type: 'usage', usage } as const, text('Well.'), finish()]);
    };
    const model = scriptedModel(...Array.from({ length: 12 }, () => answer));
    const interceptors = [fitContext({ contextWindow: 200_000, counter })];
    const session = sessions(createAgent({ model, use: interceptors })).open('s');
    for (const said of mixed(12)) await session.call(said);
    expect(offs).toHaveLength(12);
    offs.slice(4).forEach((off) => expect(Math.abs(off)).toBeLessThan(0.15));
  });

  it('C3: an exact counter is exact', () => {
    const said = mixed(8).map((it, index) => user(String(index), it));
    const actual = said.reduce((sum, _, index) => sum + 4 + count(mixed(8)[index] ?? ''), 3);
    expect(countRequest(exact, { messages: said })).toBe(actual);
  });
});
