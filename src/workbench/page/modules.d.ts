// Its own types are for programs that call it; here the report's script does.
declare module "d3";
