import { defer, of } from 'rxjs';
import type { MessageParams } from '../document.js';
import { outputOf, templateOf } from '../render.js';
import { done, type Work } from '../work.js';

export const messageWork = ({ content }: MessageParams): Work => {
  const template = templateOf(content);
  return (scope) => defer(() => of(done(outputOf(template, scope))));
};
