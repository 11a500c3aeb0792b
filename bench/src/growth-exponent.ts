/**
 * How fast a cost grows with a size: the slope of the line through the logarithms of both, by least squares. 1 is as fast as
 * the size, 2 as its square. Of fewer than two sizes it is not a number.
 */
export const growthExponent = (
  points: readonly { readonly size: number; readonly cost: number }[],
): number => {
  const logs = points.map(({ size, cost }) => ({ x: Math.log(size), y: Math.log(cost) }));
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x0, y0] = [mean(logs.map(({ x }) => x)), mean(logs.map(({ y }) => y))];
  return (
    mean(logs.map(({ x, y }) => (x - x0) * (y - y0))) / mean(logs.map(({ x }) => (x - x0) ** 2))
  );
};
