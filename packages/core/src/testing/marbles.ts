import { deepStrictEqual } from 'node:assert/strict';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import type { ModelChunk } from '../models/model.js';
import {
  finish,
  type ScriptedModel,
  scriptedModel,
  text,
  thinking,
  toolUse,
} from './scripted-model.js';

/** The log of one cold Observable, for `expectSubscriptions`. */
export type Subscriptions = Parameters<RunHelpers['expectSubscriptions']>[0];

/** A scripted model whose answers are marbles. */
export interface MarbleModel extends ScriptedModel {
  /** For each answer, when it was subscribed to and left. */
  readonly subscriptions: readonly Subscriptions[];
}

/** RxJS's helpers for a test in virtual time, and those for a model. */
export interface MarbleHelpers extends RunHelpers {
  readonly scheduler: TestScheduler;
  /** Makes a model that answers with marbles, one diagram an answer. Without `values`, `t` is a text, `h` a thought, `c` a use of the tool named `tool`, and `f` the finish: `model('--t-(cf)|')`. */
  model(
    diagrams: string | readonly string[],
    values?: Readonly<Record<string, ModelChunk>>,
  ): MarbleModel;
}

const letters: Readonly<Record<string, ModelChunk>> = {
  t: text('t'),
  h: thinking('h'),
  c: toolUse('tool'),
  f: finish(),
};

/** Runs a test in virtual time, on a scheduler of its own. One frame is a millisecond. */
export const marbles = (test: (helpers: MarbleHelpers) => void): void => {
  const scheduler = new TestScheduler((actual, expected) => {
    deepStrictEqual(actual, expected);
  });
  scheduler.run((helpers) => {
    test({
      ...helpers,
      scheduler,
      model: (diagrams, values = {}) => {
        const answers = [diagrams].flat().map((it) => helpers.cold(it, { ...letters, ...values }));
        const subscriptions = answers.map((answer) => answer.subscriptions);
        return { ...scriptedModel(...answers), subscriptions };
      },
    });
  });
};
