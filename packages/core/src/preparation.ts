import type { CallInfo } from './call-info.js';
import type { InputMessage } from './input.js';
import type { OnLimit, TemperatureRamp, Timeouts } from './limits.js';
import type { Model, ToolChoice } from './model.js';
import type { ToolEntry } from './tools/types.js';

/** What a call begins with, as `prepare` shows it and takes it back. */
export interface Preparation {
  readonly call: CallInfo;
  /** What was asked. The call gives messages their ids. */
  readonly input: readonly InputMessage[];
  /** The model and the tools of the call, and what it says beside them. Of its time-outs, `callMs` has begun already. */
  readonly options: PreparedOptions;
}

/** What a call may be prepared otherwise in. */
export interface PreparedOptions {
  readonly model?: Model;
  /** The tools of this call, instead of those of its session or agent. */
  readonly tools?: readonly ToolEntry[];
  readonly temperature?: number;
  /** Tokens that each message of the model may have. */
  readonly maxTokens?: number;
  /** A choice that forces a tool covers the first request only. Default: the model decides. */
  readonly toolChoice?: ToolChoice;
  readonly stopSequences?: readonly string[];
  /** Reasoning calls that the loop may make. Default: 10. */
  readonly maxIterations?: number;
  /** At the limit: a closing request without tools (`answer`, the default), a `maxIterations` error (`error`), or the reply so far (`partial`). */
  readonly onLimit?: OnLimit;
  /** In milliseconds. Default: 60,000 for each tool, and what the model has of its own. */
  readonly timeouts?: Timeouts;
  /** How many tools of a batch run at once; `true` is 5, `false` one by one. Default: true. */
  readonly parallel?: boolean | number;
  /** Characters of an observation before it is cut, with a marker. Default: 16,000. */
  readonly maxObservation?: number;
  /** Maximum number of tool runs: further ones are refused, and the model must answer without. Default: no limit. */
  readonly maxToolCalls?: number;
  /** Failures of one tool in a row that are taken; with the next one, the model is told to leave the tool alone. Default: 2. */
  readonly maxToolErrors?: number;
  /** How long the model waits for the news of a failed tool, times the failures in a row, in milliseconds. Default: 0. */
  readonly toolBackoffMs?: number;
  /** Maximum number of unreadable actions in a row that the model is asked to write again. Default: 2. */
  readonly maxParseRetries?: number;
  /** How long it waits before that, times the texts in a row, in milliseconds. Default: 800. */
  readonly parseBackoffMs?: number;
  /** Raises the temperature with each of them by `step` (default: 0.2) up to `max` (default: 1.5). Default: off. */
  readonly temperatureRamp?: Partial<TemperatureRamp>;
}
