import type { Adapter, Setup } from '../../adapter.js';
import { millraceWith } from '../millrace-with.js';
import { playedModel } from './played-model.js';

/** Millrace over a model in the process, as it comes. */
export const open = (setup: Setup): Adapter => millraceWith({ modelOf: playedModel }, setup);
