import { deepStrictEqual } from './assert.js';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import type { ModelChunk } from '../models/model.js';
import {
  finish,
  type ScriptedModel,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from './scripted-model.js';

/** The subscriptions to one cold Observable, for `expectSubscriptions`. */
export type Subscriptions = Parameters<RunHelpers['expectSubscriptions']>[0];

/** A scripted model whose answers are marble diagrams. */
export interface MarbleModel extends ScriptedModel {
  /** The subscriptions to each answer. */
  readonly subscriptions: readonly Subscriptions[];
}

/** RxJS's helpers for tests in virtual time, with one for models. */
export interface MarbleHelpers extends RunHelpers {
  readonly scheduler: TestScheduler;
  /**
   * Creates a model that answers with marble diagrams, one per answer. Default values: `t` text, `h` thinking, `c` a
   * call of the tool `tool`, `f` the finish: `model('--t-(cf|)')`.
   */
  model(
    diagrams: string | readonly string[],
    values?: Readonly<Record<string, ModelChunk>>,
  ): MarbleModel;
}

const letters: Readonly<Record<string, ModelChunk>> = {
  t: text('t'),
  h: thinking('h'),
  c: toolCall('tool'),
  f: finish(),
};

/** Runs a test in virtual time, with a new scheduler. One frame is a millisecond. */
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
