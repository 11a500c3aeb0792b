/** Names the steps whose ids are the nearest to one that there is not: at most ten, in their order, and of several that are as near the last. */
export const nearestSteps = (wanted: string, ids: readonly string[]): string => {
  const near = ids
    .map((id, index) => ({ id, index, shared: sharedStart(wanted, id) }))
    .sort((a, b) => b.shared - a.shared || b.index - a.index)
    .slice(0, mostNamed)
    .sort((a, b) => a.index - b.index)
    .map(({ id }) => id)
    .join(', ');
  const others = ids.length - mostNamed;
  return others > 0 ? `${near}, and ${others} more` : near;
};

const mostNamed = 10;

const sharedStart = (a: string, b: string): number => {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
};
