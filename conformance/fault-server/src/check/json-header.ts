import type { SeenRequest } from '../scenario.js';

/** Every vendor wants to be told that the body is JSON. */
export const jsonHeader = ({
  'content-type': type = '',
}: SeenRequest['headers']): readonly string[] =>
  /^application\/json\b/.test(type) ? [] : [`The Content-Type must be application/json.`];
