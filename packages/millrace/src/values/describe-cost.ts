/** The parts of a cost that its text shows. */
interface DescribedCost {
  readonly currency: string;
  readonly total?: number;
  readonly atLeast: number;
}

/** The cost as text, such as `0.0015 USD` or `at least 0.0015 USD`. Small amounts have two digits that are not 0. */
export const describeCost = ({ currency, total, atLeast }: DescribedCost): string =>
  `${total === undefined ? 'at least ' : ''}${amountText(atLeast)} ${currency}`;

const amountText = (money: number): string =>
  money.toLocaleString('en-US', {
    minimumFractionDigits: 2,
    maximumFractionDigits: 4,
    maximumSignificantDigits: 2,
    roundingPriority: 'morePrecision',
    useGrouping: false,
  });
