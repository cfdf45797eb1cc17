export { inspectPicture, measurePicture } from "../operations/inspect/picture.js";
export { saePicture } from "../operations/sae/picture.js";
export { AnswerWriter, harmless } from "./answer-writer.js";
export { attentionKinds, kindsOf } from "./attention-grid.js";
export { bars } from "./bars.js";
export { type Canvas, type Colors, canvasOf, colorsOf, narrowest } from "./canvas.js";
export { bestLayer, binOf, calibration, mostWrong, ofRows, roc } from "./classification.js";
export { executionList, executionPicture } from "./execution-picture.js";
export { shortNumber } from "./figures.js";
export { layersByPoint, pointMeanings, total } from "./inner-points.js";
export { jobList } from "./job-list.js";
export { jobPicture } from "./job-picture.js";
export { JobProgress } from "./job-progress.js";
export { legend } from "./legend.js";
export { lensGrid } from "./lens-grid.js";
export { type LensReading, lensReadings, lensViewMeanings, viewValues } from "./lens-views.js";
export { normsGrid } from "./norms-grid.js";
export { bare, heading, labelled } from "./page.js";
export { bold, dim, inScale, magnitudeScale, probabilityScale } from "./paint.js";
export {
  bestOfHeads,
  type PlacedSite,
  patchPoints,
  patchStory,
  patchTokens,
  placedSites,
  positionName,
  siteSize,
  sitesAt,
  strongestHeads,
} from "./patch-sweep-sites.js";
export { type Axis, type Plot, plot, type Series, ticksUpTo } from "./plot.js";
export { ProgressLine } from "./progress-line.js";
export { routerStatsPicture } from "./router-stats-picture.js";
export { expertsStory, firstShare } from "./routing-grid.js";
export { ago, bytes, duration } from "./spans.js";
export { statsPicture } from "./stats-picture.js";
export { answerAt, story } from "./story.js";
export { type Column, type Entry, table } from "./table.js";
export { followedLayers } from "./target-grid.js";
export { cut, fit, isPlain, oneLine, visible, width, wrap } from "./text.js";
