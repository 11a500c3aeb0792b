import { type Agent, type Input, type Message, type Reply, textOf } from '@millrace/core';
import { checkOptions, isObject, listOf, type Rule, wholeNumber } from '@millrace/core/adapter';
import { asAgent, createStep, type StepAgentOptions } from '@millrace/core/teams';
import { map, type Observable } from 'rxjs';
import { compileGraph } from './compile.js';
import { checkedDocument } from './problems-in.js';
import type { FlowResources } from './resources.js';

/** What a flow is given: what its document names, and what any agent has that is made of a step. */
export interface FlowOptions extends FlowResources, Omit<StepAgentOptions, 'name' | 'output'> {
  /** Components of a graph that run at once. Default: 5. */
  readonly concurrency?: number;
}
