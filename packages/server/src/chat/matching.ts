// Finds the routes of a request by its path and method.
import { badRequest, idOf } from '../inbound.js';
import type { Route } from './protocol.js';

export type MatchedRoute = Route & { readonly pattern: RegExp };

/** The part of a request that chooses its route. */
export type Target = Pick<Request, 'method' | 'url'>;

export const withPattern = (route: Route): MatchedRoute => ({
  ...route,
  pattern: patternOf(route.path),
});

/** Ignores a trailing slash. */
const patternOf = (path: string): RegExp => {
  const literal = path.replace(/\/+$/u, '').replaceAll(/[.*+?^${}()|[\]\\]/gu, String.raw`\$&`);
  return new RegExp(`^${literal.replaceAll(/:(\w+)/gu, '(?<$1>[^/]+)')}/?$`, 'u');
};

/** The routes of a path, of all methods. */
export const routesAt = (
  routes: readonly MatchedRoute[],
  { url }: Target,
): readonly MatchedRoute[] => {
  const { pathname } = new URL(url);
  return routes.filter(({ pattern }) => pattern.test(pathname));
};

/** The methods of routes. `GET` implies `HEAD`. */
export const methodsOf = (routes: readonly MatchedRoute[]): readonly string[] => [
  ...new Set(routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))),
];

/** Chooses the route for a request among those that match its path. */
export const routeFor = (
  found: readonly MatchedRoute[],
  request: Request,
): MatchedRoute | undefined => {
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const ofMethod = found.filter((route) => route.method === method);
  return (
    ofMethod.find(({ accepts }) => accepts?.(request) === true) ??
    ofMethod.find(({ accepts }) => accepts === undefined)
  );
};

/** The ids in the path of a request. Throws `invalidRequest` for one that is not valid. */
export const idsIn = (
  { pattern }: MatchedRoute,
  { url }: Target,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(pattern.exec(new URL(url).pathname)?.groups ?? {}).map(([name, part]) => [
      name,
      idOf(decoded(part), name),
    ]),
  );

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    throw badRequest("'id' is not encoded as UTF-8");
  }
};
