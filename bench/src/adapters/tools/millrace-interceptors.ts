import { on } from 'millrace';
import { map } from 'rxjs';
import type { Adapter, Setup } from '../../adapter.js';
import { millraceWith } from '../millrace-with.js';
import { playedModel } from './played-model.js';

/** The same with an interceptor before each tool and one behind it: both make their event anew. */
export const open = (setup: Setup): Adapter => {
  const interceptors = [
    on(
      'preActing',
      map((event) => ({ ...event })),
    ),
    on(
      'postActing',
      map((event) => ({ ...event })),
    ),
  ];
  return millraceWith({ modelOf: playedModel, interceptors }, setup);
};
