/* The page of the HTTP API: Swagger UI over the document that this server answers. */
"use strict";

(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.addEventListener("change", follow);
  follow();
  /* Swagger UI writes a page of its own; here it is a part of one, which has its main content and its first heading. */
  const fit = () => {
    const operations = document.querySelector(".swagger-ui main");
    operations?.setAttribute("role", "region");
    operations?.setAttribute("aria-label", "Operations");
    document.querySelector(".swagger-ui h1")?.setAttribute("aria-level", "2");
  };
  SwaggerUIBundle({
    url: "/openapi.json", dom_id: "#swagger", deepLinking: true, docExpansion: "list", validatorUrl: null,
    syntaxHighlight: { theme: "obsidian" }, onComplete: fit,
  });
})();
