import type { Adapter, Setup } from '../../adapter.js';
import { millraceWith } from '../millrace-with.js';
import { playedModel } from './played-model.js';

/** The same with an approver of the tool, which says yes at once. */
export const open = (setup: Setup): Adapter =>
  millraceWith({ modelOf: playedModel, approve: () => true }, setup);
