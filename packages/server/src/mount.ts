/** The header for the path that a proxy has removed. */
export const mountHeader = 'x-forwarded-prefix';

/**
 * The path that a proxy or a framework has removed from the path of a request, such as `/ai`; empty without the header, or if that has anything else. Of
 * several proxies, each may add its own: `/a, /b` is `/a/b`. A forged one is a path of this site as well, so links to it lead nowhere else.
 */
export const mountOf = ({ headers }: Pick<Request, 'headers'>): string => {
  const header = headers.get(mountHeader) ?? '';
  const paths = header.length > 512 ? [] : header.split(/, *(?=\/)/u);
  const given = paths.map((path) => path.replace(/\/+$/u, '')).join('');
  return isMount.test(given) ? given : '';
};

/** Segments of any characters that a path may have, but for `.` and `..`. */
const isMount = /^(?:\/(?!(?:\.|%2e){1,2}(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2})+)*$/iu;

/** A request as the server below a path gets it: its URL lacks that path, and a header names it. */
export const movedRequest = (request: Request, url: string, mount: string): Request => {
  const headers = new Headers(request.headers);
  if (mount !== '') headers.set(mountHeader, `${mountOf(request)}${mount}`);
  const { method, body, signal } = request;
  return new Request(url, { method, headers, body, signal, duplex: 'half' });
};
