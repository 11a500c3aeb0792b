import { tool, type Tool, toolOutput, type ToolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { checkOptions } from 'millrace/values';
import { map } from 'rxjs';
import { textAt, valueAt } from './json.js';
import {
  createService,
  json$,
  keyRules,
  oneLine,
  reasonOf,
  requiredKey,
  type Service,
  serviceError,
  type ServiceOptions,
} from './service.js';

/** Options of `stockQuote`. */
export interface StockQuoteOptions extends ServiceOptions {
  /** The key of Alpha Vantage. Default: the environment variable `ALPHAVANTAGE_API_KEY`. */
  readonly apiKey?: string | undefined;
}

/**
 * Creates the tool `stock_quote`, which returns the latest price of a stock from Alpha Vantage (`GLOBAL_QUOTE`).
 *
 * Prices are delayed, as the plan of the key says. Throws a `config` error without a key. `details` has `symbol`, `price`,
 * `open`, `high`, `low`, `previousClose`, `change`, `changePercent`, `volume` and `day`, as strings.
 */
export const stockQuote = (options: StockQuoteOptions = {}): Tool => {
  checkOptions('stockQuote()', options, keyRules);
  const key = requiredKey('stockQuote()', options.apiKey, 'ALPHAVANTAGE_API_KEY');
  const service = createService('Alpha Vantage', 'https://www.alphavantage.co', options, key);
  return tool({
    name: 'stock_quote',
    idempotent: true,
    description:
      'Returns the latest price of a stock by its ticker symbol, with the change to the previous close. It may be delayed.',
    input: jsonSchema({
      type: 'object',
      properties: {
        symbol: {
          type: 'string',
          pattern: '^[A-Za-z0-9.^:=-]{1,20}$',
          description: 'The ticker symbol, with the exchange outside of the US.',
          examples: ['IBM', 'TSCO.LON'],
        },
      },
      required: ['symbol'],
      additionalProperties: false,
    }),
    run: ({ symbol }, { scheduler }) => {
      const query = { function: 'GLOBAL_QUOTE', symbol, apikey: key };
      return json$(service, { path: '/query', query }, scheduler).pipe(
        map((json) => quoteIn(json, symbol, service)),
      );
    },
  });
};

const quoteIn = (json: unknown, symbol: string, service: Service): ToolOutput => {
  // The vendor answers with the status 200 in any case.
  const limit = textAt(json, 'Information') || textAt(json, 'Note');
  if (limit !== '')
    throw serviceError(service, 'rateLimited', `refused: ${reasonOf(service, limit, 300)}`);
  const refused = textAt(json, 'Error Message');
  if (refused !== '') {
    throw serviceError(service, 'invalidRequest', `refused: ${reasonOf(service, refused, 300)}`);
  }
  const quote = valueAt(json, 'Global Quote');
  const field = (name: string): string => oneLine(textAt(quote, name), 50);
  const details = {
    ...{ symbol: field('01. symbol'), open: field('02. open'), high: field('03. high') },
    ...{ low: field('04. low'), price: field('05. price'), volume: field('06. volume') },
    ...{ day: field('07. latest trading day'), previousClose: field('08. previous close') },
    ...{ change: field('09. change'), changePercent: field('10. change percent') },
  };
  if (details.price === '') {
    throw serviceError(service, 'invalidRequest', `has no stock with the symbol '${symbol}'`);
  }
  return toolOutput({
    content:
      `${details.symbol}: ${details.price} on ${details.day} (${details.change}, ${details.changePercent}). ` +
      `Open ${details.open}, high ${details.high}, low ${details.low}, previous close ${details.previousClose}, ` +
      `volume ${details.volume}. In the currency of its exchange.`,
    details,
  });
};
