// Tools that ask services: weather, stock prices, translation.
export type { ServiceOptions } from './service.js';
export { stockQuote, type StockQuoteOptions } from './stock-quote.js';
export { translate, type TranslateOptions } from './translate.js';
export { weather, type WeatherOptions } from './weather.js';
