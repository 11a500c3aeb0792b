import type { IncomingHttpHeaders } from 'node:http';

/** The key behind `Bearer`. */
export const bearer = ({ authorization }: IncomingHttpHeaders): string | undefined =>
  authorization?.replace(/^Bearer /, '');
