// More tools: web search, Wikipedia, papers, weather, stock prices, translation, e-mail.
export {
  type Mail,
  type MailApprover,
  sendMail,
  type SendMailOptions,
  type SmtpServer,
} from './mail/send-mail.js';
export { githubSearch, type GithubSearchOptions } from './search-web/github-search.js';
export { arxiv, pubmed, type PubmedOptions } from './search-web/papers.js';
export type { Source } from './search-web/sources.js';
export { webSearch, type WebSearchOptions } from './search-web/web-search.js';
export { wikipedia, type WikipediaOptions } from './search-web/wikipedia.js';
export type { ServiceOptions } from './services/service.js';
export { stockQuote, type StockQuoteOptions } from './services/stock-quote.js';
export { translate, type TranslateOptions } from './services/translate.js';
export { weather, type WeatherOptions } from './services/weather.js';
