import { describe, expect, it } from '@jest/globals';
import {
  type Message,
  type ModelChunk,
  openDemand,
  type ToolChoice,
  type ToolDeclaration,
} from '@millrace/core';
import fc from 'fast-check';
import { asapScheduler } from 'rxjs';
import { ask, fourTools, otherTools, used, user } from './declarations.test-data.js';
import { demoModel } from './demo-model.js';
import { respond } from './respond.js';
import { callKey } from './step.js';

// The time of the process, not of a clock: others may keep the machine busy.
const cpuMs = (): number => process.cpuUsage().user / 1_000;

const words = fc.constantFrom(
  ...'what is time in Tokyo and then 2 + 3 * 4 ( ) % of it the result show README.md convert miles to km half'.split(
    ' ',
  ),
  ...'__proto__ constructor toString , ? . ; " “ ” search docs for add divide by 7 1,000 Europe/Berlin hello \n'.split(
    ' ',
  ),
);

const question = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.array(words, { maxLength: 25 }).map((list) => list.join(' ')),
);

const schema = fc.oneof(
  fc.record(
    {
      type: fc.constantFrom('string', 'number', 'integer', 'boolean', 'object', 'array', 7, null),
      enum: fc.array(fc.oneof(fc.string(), fc.integer())),
      examples: fc.array(
        fc.oneof(fc.constantFrom('2 + 2', 'Europe/Berlin', 'a.md', 'ORD-1'), fc.anything()),
      ),
      pattern: fc.oneof(fc.string(), fc.constantFrom('^(a+)+$', '^\\d+$')),
      format: fc.constantFrom('uri', 'email', 'date', 'uuid', 'other'),
      description: fc.string(),
      minLength: fc.nat(5),
      default: fc.string(),
    },
    { requiredKeys: [] },
  ),
  fc.anything(),
);

const name = fc.constantFrom(
  'query',
  'path',
  'expression',
  'place',
  'text',
  'x',
  '__proto__',
  'constructor',
);

const tool: fc.Arbitrary<ToolDeclaration> = fc
  .record({
    name: fc.stringMatching(/^[\w.-]{1,12}$/u),
    description: fc.string(),
    properties: fc
      .array(fc.tuple(name, schema), { maxLength: 4 })
      .map((it) => Object.fromEntries(it)),
    required: fc.array(name, { maxLength: 3 }),
  })
  .map(({ properties, required, ...rest }) => ({
    ...rest,
    inputSchema: { type: 'object', properties, required },
  }));

const tools = fc.oneof(
  fc.constant<readonly ToolDeclaration[]>(fourTools),
  fc.constant<readonly ToolDeclaration[]>(otherTools),
  fc.uniqueArray(tool, { maxLength: 5, selector: (it) => it.name }),
);

const toolChoice = fc.constantFrom<ToolChoice>('auto', 'none', 'required', { name: 'clock' });

const chunksOf = (request: ReturnType<typeof ask>): readonly ModelChunk[] => {
  const chunks: ModelChunk[] = [];
  const context = { demand: openDemand, scheduler: asapScheduler, report: () => undefined };
  demoModel()
    .stream$(request, { ...context, stepId: 'c/1', random: () => 0 })
    .subscribe((chunk) => chunks.push(chunk));
  return chunks;
};

describe('whatever it is asked', () => {
  it('answers, the same each time, and ends with a finish', () => {
    fc.assert(
      fc.property(question, tools, toolChoice, (text, given, choice) => {
        const request = ask(text, { tools: given, toolChoice: choice });
        const chunks = chunksOf(request);
        expect(chunks.at(-1)).toEqual({ type: 'finish', finish: 'stop' });
        expect(chunks.filter(({ type }) => type === 'finish')).toHaveLength(1);
        expect(chunks.some(({ type }) => type === 'text' || type === 'toolUse')).toBe(true);
        expect(chunksOf(request)).toEqual(chunks);
      }),
    );
  });

  it('gives every required argument, and asks for no tool that is not declared', () => {
    fc.assert(
      fc.property(question, tools, toolChoice, (text, given, choice) => {
        const response = respond(ask(text, { tools: given, toolChoice: choice }));
        if (response.type === 'answer') return;
        expect(choice).not.toBe('none');
        for (const { name, input } of response.calls) {
          const declared = given.find((it) => it.name === name);
          const required = (declared?.inputSchema['required'] ?? [
            'undeclared',
          ]) as readonly string[];
          expect(required.filter((key) => !Object.hasOwn(input, key))).toEqual([]);
        }
      }),
    );
  });

  it('never makes a call again whose result is there, and comes to an answer', () => {
    const said = fc.oneof(fc.string(), fc.constant('42'));
    const result = fc.oneof(fc.record({ output: said }), fc.record({ error: said }));
    fc.assert(
      fc.property(
        question,
        tools,
        fc.array(result, { minLength: 1, maxLength: 6 }),
        (text, given, results) => {
          let messages: readonly Message[] = [user(text)];
          const made = new Set<string>();
          for (let round = 0; round < 40; round += 1) {
            const response = respond(ask(messages, { tools: given }));
            if (response.type === 'answer') return;
            const keys = response.calls.map(({ name, input }) => callKey(name, input));
            expect(keys.filter((key) => made.has(key))).toEqual([]);
            expect(new Set(keys).size).toBe(keys.length);
            keys.forEach((key) => made.add(key));
            const uses = response.calls.map((call, index) => ({
              ...call,
              ...results[(round + index) % results.length],
            }));
            messages = [...messages, ...used(...uses)];
          }
          throw new Error('There was no answer.');
        },
      ),
    );
  });

  it('takes no longer than it may', () => {
    const start = cpuMs();
    for (const text of ['(', 'a ', '2+', 'Tokyo and ', 'a.md, ', '{[(']) {
      respond(ask(text.repeat(1_000_000 / text.length)));
    }
    expect(cpuMs() - start).toBeLessThan(10_000);
  });
});
