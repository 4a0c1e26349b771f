"""The console: the page that `GET /` serves. Its sources are in `page/`, what is served in `built/`."""
