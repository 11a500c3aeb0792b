import { match, ok, strictEqual } from './assert.js';
import { asyncScheduler, lastValueFrom, toArray } from 'rxjs';
import { openDemand } from '../flow/demand.js';
import { createToolkit, liveToolkit } from '../tools/toolkit.js';
import { type ContextEntry, contextValues, valueOf } from '../tools/context-key.js';
import { type Check, checksOf } from './verify-events.js';
import type { Tool, ToolContext } from '../tools/types.js';

/** Inputs that a tool must accept, and inputs it must reject. */
export interface ToolSamples {
  readonly valid: readonly Readonly<Record<string, unknown>>[];
  readonly invalid: readonly unknown[];
  /** Values of context keys. */
  readonly context?: readonly ContextEntry[];
}

/** Overrides of the tool context. */
export interface LentToolContextOptions extends Partial<Omit<ToolContext, 'get'>> {
  /** Values of context keys: `[db.of(pool)]`. */
  readonly context?: readonly ContextEntry[] | undefined;
}

/** A tool context, for tests that run a tool directly with `run$`, which does not validate. */
export const lentToolContext = ({
  context = [],
  ...lent
}: LentToolContextOptions = {}): ToolContext => ({
  callId: 'test',
  toolCallId: 't1',
  idempotencyKey: 'test/t1',
  agent: ['test'],
  iteration: 1,
  messages: [],
  kept: {},
  signal: new AbortController().signal,
  demand: openDemand,
  scheduler: asyncScheduler,
  metadata: {},
  toolkit: liveToolkit({ current: createToolkit([]) }),
  get: (key) => valueOf(key, contextValues(context)),
  ...lent,
});

export const toolContract = (
  create: () => Tool,
  { valid, invalid, context = [] }: ToolSamples,
): readonly Check[] =>
  checksOf(create, {
    'has a name that a model can call, a description, and a schema of an object': ({
      name,
      description,
      inputSchema,
    }) => {
      match(name, /^[\w.-]{1,64}$/);
      ok(description.trim().length > 0);
      strictEqual(inputSchema['type'], 'object');
    },
    'takes valid inputs, and leaves them as they are': async (tool) => {
      for (const input of valid) {
        const before = JSON.stringify(input);
        const verdict = await lastValueFrom(tool.validation$(input, contextValues(context)));
        ok(verdict.valid, `${JSON.stringify(input)} was refused`);
        strictEqual(JSON.stringify(input), before);
      }
    },
    'refuses invalid inputs, and says what is wrong': async (tool) => {
      for (const input of invalid) {
        const verdict = await lastValueFrom(tool.validation$(input, contextValues(context)));
        ok(!verdict.valid, `${JSON.stringify(input)} was taken`);
        ok(verdict.problems.length > 0);
      }
    },
    'emits progress, then one output of content blocks': async (tool) => {
      for (const input of valid) {
        const verdict = await lastValueFrom(tool.validation$(input, contextValues(context)));
        const value = verdict.valid ? verdict.value : input;
        const emissions = await lastValueFrom(
          tool.run$(value, lentToolContext({ context })).pipe(toArray()),
        );
        const last = emissions.at(-1);
        strictEqual(emissions.filter(({ type }) => type === 'output').length, 1);
        ok(last?.type === 'output' && last.output.content.length > 0);
      }
    },
  });
